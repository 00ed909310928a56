"""The routes of an agent service below `/agent-service`, for the unmodified clients of such a service.

They list threads, read histories and store scores. No agent runs here. Which agents and models there are is told, since
a client refuses names that it does not know. These routes are not in the OpenAPI description: they are another API.
"""
