"""Events of the Google Agent Development Kit: the JSON in which its own stores keep them, or the Event objects."""

from chatledger.formats.google_adk.codec import CODEC, GoogleADK

__all__ = ["CODEC", "GoogleADK"]
