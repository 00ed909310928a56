// Store an answer while a model writes it: open a draft, add pieces, complete it.
// Usage: node answer.mjs LEDGER THREAD REQUEST QUESTION, with a token in LEDGER_TOKEN.

const [ledger, thread, request, question] = process.argv.slice(2);
const drafts = `${ledger}/v1/threads/${encodeURIComponent(thread)}/drafts`;

/** Each of these requests may be sent again. So whatever fails on the way is tried once more. */
async function post(path, body, headers = {}) {
  for (let tries = 0; ; tries++) {
    try {
      const response = await fetch(drafts + path, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${process.env.LEDGER_TOKEN}`,
          "Content-Type": "application/json",
          ...headers,
        },
        body: JSON.stringify(body),
      });
      const answer = await response.json();
      if (response.ok) return answer;
      const mayPass = response.status >= 500 || answer.type === "urn:chatledger:DraftLive";
      if (!mayPass || tries === 600) throw Object.assign(new Error(answer.detail), { final: true });
    } catch (error) {
      if (error.final || tries === 600) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Your model. */
async function* model(question) {
  for (const word of `You asked: ${question} 🌧 It rains. `.repeat(20).split(/(?<= )/)) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    yield word;
  }
}

const opened = await post("", { lease: 5 }, { "Idempotency-Key": request });
const { token, message } = opened;
if (!opened.replayed) {
  let { offset } = opened; // what the server returned: it is never computed
  for await (const piece of model(question)) {
    ({ offset } = await post(`/${message.message_id}/pieces`, { token, offset, pieces: [piece] }));
  }
  await post(`/${message.message_id}/complete`, { token, offset });
}
console.log(message.message_id);
