// A page with an unmodified useChat. It comes back whenever its connection breaks, and counts what the stream brings.

import { Chat, useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import React from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
const id = query.get("chat");
const exact = query.get("mode") === "exact";
const api = "/v1/ai-sdk/support";
const path = `${api}/${encodeURIComponent(id)}`;

// `since`: UTF-16 units of text since the message began, or a step of it began anew.
window.count = { received: 0, since: 0, resets: 0, starts: 0, streams: 0, ended: "" };

function note(line) {
  if (!line.startsWith("data: {")) return;
  const chunk = JSON.parse(line.slice(6));
  if (chunk.type === "text-delta") {
    window.count.received += chunk.delta.length;
    window.count.since += chunk.delta.length;
  } else if (chunk.type === "reset-step" || chunk.type === "start") {
    window.count.since = 0;
    window.count[chunk.type === "start" ? "starts" : "resets"] += 1;
  } else if (["finish", "abort", "error"].includes(chunk.type)) {
    window.count.ended = chunk.type;
  }
}

async function counting(url, init) {
  const response = await fetch(url, init);
  if (!response.body || response.status !== 200) return response;
  window.count.streams += 1;
  const decoder = new TextDecoder();
  let rest = "";
  const counter = new TransformStream({
    transform(bytes, controller) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop();
      lines.forEach(note);
      controller.enqueue(bytes);
    },
  });
  return new Response(response.body.pipeThrough(counter), { status: 200, headers: response.headers });
}

async function load() {
  const read = await fetch(`/v1/threads/${encodeURIComponent(id)}/messages?turns=5&format=ai-sdk`);
  return read.ok ? (await read.json()).payload : [];
}

const part = (p) => [
  p.type,
  (p.text ?? p.rawInput ?? "").length,
  p.state,
  p.providerMetadata?.chatledger?.crc ?? p.toolCallId,
];

function have() {
  const last = chat.messages.at(-1);
  if (!exact || chat.status !== "error" || last?.role !== "assistant") return "";
  return `?have=${encodeURIComponent(JSON.stringify({ id: last.id, parts: last.parts.map(part) }))}`;
}

const options = exact
  ? { resumeStreamIsReplay: false, prepareReconnectToStreamRequest: () => ({ api: `${path}/stream${have()}` }) }
  : {};
const transport = new DefaultChatTransport({ api, fetch: counting, ...options });
const chat = new Chat({ id, transport, messages: await load() });
window.chat = chat;

async function comeBack() {
  if (chat.status === "error" && window.count.ended !== "error") {
    await chat.resumeStream();
    if (chat.status === "ready") {
      const messages = await load().catch(() => null);
      if (messages?.length) chat.messages = messages;
    }
  }
  setTimeout(comeBack, 200);
}
comeBack();

const text = (message) => message.parts.map((p) => (p.type === "text" ? p.text : "")).join("");

function Page() {
  const { messages, status } = useChat({ chat, resume: true });
  return (
    <main data-status={status}>
      {messages.map((message) => (
        <p key={message.id} className={message.role}>
          {text(message)}
        </p>
      ))}
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Page />);
