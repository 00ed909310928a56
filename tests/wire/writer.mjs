// Writes an answer into the server by its routes for drafts, and sends again whatever was not acknowledged.
//   node writer.mjs URL THREAD, with a list of pieces as JSON on each line of the input

import { createInterface } from "node:readline";

const [url, thread] = process.argv.slice(2);
const drafts = `${url}/v1/threads/${encodeURIComponent(thread)}/drafts`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function post(path, body, headers = {}) {
  for (;;) {
    try {
      const response = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
      const answer = await response.json();
      if (response.status < 300) return answer;
      if (answer.type === "urn:chatledger:OffsetMoved") return answer;
      if (response.status < 500 && response.status !== 409) throw new Error(JSON.stringify(answer));
    } catch (error) {
      if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
    }
    await pause(50);
  }
}

let { token, offset, message } = await post(drafts, { lease: 120 }, { "idempotency-key": "once" });
const draft = `${drafts}/${encodeURIComponent(message.message_id)}`;
for await (const line of createInterface({ input: process.stdin })) {
  for (const piece of JSON.parse(line)) {
    ({ offset } = await post(`${draft}/pieces`, { token, offset, pieces: [piece] }));
    await pause(25);
  }
}
await post(`${draft}/complete`, { token, offset });
