"""Events of the Google Agent Development Kit: the JSON form that its own stores use, or the Event objects."""

from chatledger.formats.google_adk.codec import CODEC, GoogleADK

__all__ = ["CODEC", "GoogleADK"]
