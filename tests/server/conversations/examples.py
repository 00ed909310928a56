"""An item for each type that the SDK sends, by the name of its class."""

from __future__ import annotations

from typing import Any

_SCREENSHOT = {"type": "computer_screenshot", "image_url": "https://example.org/screen.png", "detail": "auto"}
_TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": True}
_TEXT = {"type": "output_text", "text": "21 °C", "annotations": [], "logprobs": []}

EXAMPLES: dict[str, dict[str, Any]] = {
    "EasyInputMessageParam": {"role": "user", "content": "What is the weather in Tokyo?"},
    "Message": {
        "type": "message",
        "role": "developer",
        "content": [
            {"type": "input_text", "text": "Be brief. \U0001f600"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "high"},
            {"type": "input_file", "file_id": "file-1", "filename": "a.pdf"},
        ],
    },
    "ResponseOutputMessageParam": {
        "id": "msg_own",
        "type": "message",
        "role": "assistant",
        "status": "incomplete",
        "phase": "commentary",
        "content": [_TEXT, {"type": "refusal", "refusal": "No."}],
    },
    "ResponseFileSearchToolCallParam": {
        "id": "fs_own",
        "type": "file_search_call",
        "status": "completed",
        "queries": ["rain"],
        "results": [{"file_id": "f", "text": "…", "score": 0.75, "attributes": {"year": 2026}}],
    },
    "ResponseComputerToolCallParam": {
        "id": "cu_own",
        "type": "computer_call",
        "call_id": "call_1",
        "action": {"type": "click", "button": "left", "x": 1, "y": 2},
        "pending_safety_checks": [],
        "status": "completed",
    },
    "ComputerCallOutput": {
        "type": "computer_call_output",
        "call_id": "call_1",
        "output": _SCREENSHOT,
        "acknowledged_safety_checks": [{"id": "s", "code": "c", "message": "m"}],
    },
    "ResponseFunctionWebSearchParam": {
        "id": "ws_own",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "Tokyo", "sources": [{"type": "url", "url": "https://example.org"}]},
    },
    "ResponseFunctionToolCallParam": {
        "type": "function_call",
        "call_id": "call_2",
        "name": "weather",
        "arguments": '{"city":  "Tokyo"}',
    },
    "FunctionCallOutput": {
        "type": "function_call_output",
        "call_id": "call_2",
        "output": [{"type": "input_text", "text": "21 °C"}],
        "status": "incomplete",
    },
    "ToolSearchCall": {
        "type": "tool_search_call",
        "call_id": "call_3",
        "arguments": {"q": "weather"},
        "execution": "client",
    },
    "ResponseToolSearchOutputItemParamParam": {
        "type": "tool_search_output",
        "call_id": "call_3",
        "execution": "client",
        "tools": [_TOOL],
    },
    "AdditionalTools": {"type": "additional_tools", "role": "developer", "tools": [_TOOL]},
    "ResponseConfigurationUpdateItemParamParam": {"type": "configuration_update", "reasoning": {"effort": "low"}},
    "ResponseReasoningItemParam": {
        "id": "rs_own",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "The user asks."}],
        "content": [{"type": "reasoning_text", "text": "Tokyo …"}],
        "encrypted_content": "gAAA",
    },
    "ResponseCompactionItemParamParam": {"type": "compaction", "encrypted_content": "gAAA"},
    "ImageGenerationCall": {
        "id": "ig_own",
        "type": "image_generation_call",
        "status": "completed",
        "result": "iVBORw0KGgo=",
    },
    "ResponseCodeInterpreterToolCallParam": {
        "id": "ci_own",
        "type": "code_interpreter_call",
        "code": "1 + 1",
        "container_id": "c",
        "outputs": [{"type": "logs", "logs": "2"}],
        "status": "completed",
    },
    "LocalShellCall": {
        "id": "lsh_own",
        "type": "local_shell_call",
        "call_id": "call_4",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
        "status": "in_progress",
    },
    "LocalShellCallOutput": {"id": "lsho_own", "type": "local_shell_call_output", "output": "a\nb"},
    "ShellCall": {
        "type": "shell_call",
        "call_id": "call_5",
        "action": {"commands": ["ls"], "timeout_ms": 100, "max_output_length": 200},
        "environment": {"type": "local"},
    },
    "ShellCallOutput": {
        "type": "shell_call_output",
        "call_id": "call_5",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        "max_output_length": 200,
    },
    "ApplyPatchCall": {
        "type": "apply_patch_call",
        "call_id": "call_6",
        "operation": {"type": "delete_file", "path": "a.txt"},
        "status": "completed",
    },
    "ApplyPatchCallOutput": {
        "type": "apply_patch_call_output",
        "call_id": "call_6",
        "status": "failed",
        "output": "no such file",
    },
    "McpListTools": {
        "id": "mcpl_own",
        "type": "mcp_list_tools",
        "server_label": "s",
        "tools": [{"name": "t", "input_schema": {"type": "object"}, "annotations": None}],
    },
    "McpApprovalRequest": {
        "id": "mcpr_own",
        "type": "mcp_approval_request",
        "server_label": "s",
        "name": "t",
        "arguments": "{}",
    },
    "McpApprovalResponse": {"type": "mcp_approval_response", "approval_request_id": "mcpr_own", "approve": True},
    "McpCall": {
        "id": "mcp_own",
        "type": "mcp_call",
        "server_label": "s",
        "name": "t",
        "arguments": "{}",
        "output": "done",
        "error": None,
    },
    "ResponseCustomToolCallOutputParam": {"type": "custom_tool_call_output", "call_id": "call_7", "output": "done"},
    "ResponseCustomToolCallParam": {
        "type": "custom_tool_call",
        "call_id": "call_7",
        "name": "exec",
        "input": "ls -l",
    },
    "Program": {
        "id": "prog_own",
        "type": "program",
        "call_id": "call_8",
        "code": "return 1",
        "fingerprint": "f",
    },
    "ProgramOutput": {
        "id": "progo_own",
        "type": "program_output",
        "call_id": "call_8",
        "result": "1",
        "status": "completed",
    },
}

REFUSED: dict[str, dict[str, Any]] = {
    "CompactionTrigger": {"type": "compaction_trigger"},
    "ItemReference": {"type": "item_reference", "id": "msg_own"},
}
"""Types that a request to a model may hold, and that are no items of a conversation."""
