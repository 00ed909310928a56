// Reads payloads as JSON, one a line, and prints for each what the AI SDK finds wrong with it; null for nothing.
// The folder in which the package is installed is the argument. An address that is no URL is the message's own.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const installed = createRequire(`${process.argv[2]}/package.json`).resolve("ai");
const { convertToModelMessages, safeValidateUIMessages } = await import(pathToFileURL(installed).href);

async function problem(messages) {
  const checked = await safeValidateUIMessages({ messages });
  if (!checked.success) return String(checked.error);
  if (!isDeepStrictEqual(checked.data, messages)) return "the SDK drops keys that it does not know";
  try {
    await convertToModelMessages(messages);
  } catch (error) {
    if (!(error instanceof TypeError && error.code === "ERR_INVALID_URL")) return `convertToModelMessages: ${error}`;
  }
  return null;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await problem(JSON.parse(line))));
}
