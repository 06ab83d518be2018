// Requests every reply of a catalogue with the real client, and prints what it handed to its program.
//
// Usage: client_sdks.mjs NODE_MODULES BASE_URL MANIFEST, where the manifest lists [id, mode, wire].

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [modules, base, file] = process.argv.slice(2);
const OpenAI = createRequire(`${modules}/`)('openai').default;
const question = 'What is the weather?';
const model = 'synthetic-1';
const names = ['get_weather', 'get_forecast'];
const parameters = { type: 'object', properties: { location: { type: 'string' } } };
const generated = /^call_[0-9a-f]{8}-[0-9a-f]{4}-/;

const call = (id, name, args) => [
  typeof id === 'string' && generated.test(id) ? '<generated>' : id ?? null,
  name ?? null,
  args ?? null,
];

async function chat(client, mode) {
  const tools = names.map((name) => ({ type: 'function', function: { name, parameters } }));
  const asked = { model, messages: [{ role: 'user', content: question }], tools };
  const reply =
    mode === 'stream'
      ? await client.chat.completions.stream(asked).finalChatCompletion()
      : await client.chat.completions.create(asked);
  const message = reply.choices[0].message;
  const calls = (message.tool_calls ?? []).map((it) => call(it.id, it.function.name, it.function.arguments));
  return { calls, text: message.content ?? '' };
}

async function responses(client, mode) {
  const tools = names.map((name) => ({ type: 'function', name, parameters, strict: false }));
  const asked = { model, input: question, tools };
  const reply =
    mode === 'stream'
      ? await client.responses.stream(asked).finalResponse()
      : await client.responses.create(asked);
  const items = reply.output.filter((it) => it.type === 'function_call');
  return { calls: items.map((it) => call(it.call_id, it.name, it.arguments)), text: reply.output_text ?? '' };
}

const wires = { 'openai-chat': chat, 'openai-responses': responses };
const seen = {};
console.error = () => {};
process.on('unhandledRejection', () => {});
for (const [entry, mode, wire] of JSON.parse(readFileSync(file, 'utf8'))) {
  if (!wires[wire]) continue;
  const client = new OpenAI({ baseURL: `${base}/${entry}/${mode}`, apiKey: 'an-unchecked-key', maxRetries: 0 });
  let outcome;
  try {
    outcome = await wires[wire](client, mode);
  } catch (error) {
    outcome = { raises: error.constructor.name, what: String(error.message).slice(0, 200) };
  }
  seen[`openai-node ${entry} ${mode}`] = outcome;
}
process.stdout.write(JSON.stringify(seen));
