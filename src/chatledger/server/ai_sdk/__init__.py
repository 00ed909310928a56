"""The wire of the AI SDK, so that an unmodified `useChat` talks to the agents of `create_app(answers=…)`.

`api` of its transport is `/v1/ai-sdk/{agent}`. A chat is a thread. A UI message of the assistant is all that an answer
says: a step for each stored message, and each result inside its call.
"""
