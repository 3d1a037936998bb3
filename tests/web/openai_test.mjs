// openai_test.mjs PORT KEY: what users of OpenAI's client do, against models with random weights: chatty, caller and plain
// of tests/server/serve_common.sh, with 2 slots and a queue of 4.
import { createRequire } from "node:module";

const { OpenAI } = createRequire(import.meta.url)("openai");
const [port, apiKey] = process.argv.slice(2);
const baseURL = `http://127.0.0.1:${port}/v1`;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 60000 });

let passed = 0, failed = 0;
function check(good, what) {
  good ? ++passed : ++failed;
  if (!good) console.log(`not so: ${what}`);
}
const text = (value) => JSON.stringify(value);
const equal = (got, wanted, what) => check(text(got) === text(wanted), `${what}: ${text(got)}, not ${text(wanted)}`);
const part = async (name, work) => {
  try {
    await work();
  } catch (error) {
    check(false, `${name}: ${error.stack}`);
  }
};

// The promise fails with this class of the client's errors.
async function fails(promise, kind, { status, code, param, message } = {}) {
  try {
    check(false, `an answer instead of ${kind.name}: ${text(await promise).slice(0, 200)}`);
  } catch (error) {
    check(error instanceof kind, `${error.constructor.name} instead of ${kind.name}: ${error.message}`);
    if (status) equal(error.status, status, kind.name);
    if (code !== undefined) equal(error.code, code, kind.name);
    if (param !== undefined) equal(error.param, param, kind.name);
    if (message) check(error.message.includes(message), `${kind.name}: '${message}' is not in ${error.message}`);
    return error;
  }
}

const counted = ({ prompt_tokens_details, ...rest }) => rest;  // what was in the cache depends on who asked before
const messages = [{ role: "system", content: "Be kind." }, { role: "user", content: "one 你好" }];
const chat = { model: "chatty", messages, max_tokens: 12, seed: 7 };
const weather = { name: "weather", description: "of a city", parameters: { type: "object", properties: { city: { type: "string" } } } };
const one_of = (value) => ({ type: "object", properties: { kind: { enum: [value] }, ok: { type: "boolean" } }, required: ["kind", "ok"], additionalProperties: false });
// Random weights call no tools by themselves; held to this form they do.
const call = {
  type: "object", required: ["name", "parameters"], additionalProperties: false,
  properties: { name: { enum: ["weather"] }, parameters: { type: "object", properties: { city: { enum: ["Paris"] } }, required: ["city"], additionalProperties: false } },
};

await part("models", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  equal(names, ["chatty", "caller", "plain"], "models");
  const one = await client.models.retrieve("plain");
  equal([one.id, one.object, typeof one.created], ["plain", "model", "number"], "one model");
});

await part("completions", async () => {
  const asked = { model: "plain", prompt: ["one two", "three"], n: 2, max_tokens: 9, seed: 3, logprobs: 2 };
  const whole = await client.completions.create(asked);
  equal(whole.object, "text_completion", "completions");
  equal(whole.choices.map((c) => c.index), [0, 1, 2, 3], "two texts of two prompts");
  for (const choice of whole.choices) {
    check(["stop", "length"].includes(choice.finish_reason), `finish_reason ${choice.finish_reason}`);
    const { tokens, token_logprobs, top_logprobs, text_offset } = choice.logprobs;
    check(tokens.length === token_logprobs.length && tokens.length === top_logprobs.length && tokens.length === text_offset.length, "lengths of logprobs");
    check(token_logprobs.every((p) => p <= 0), "log-probabilities are not positive");
  }
  equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens, "usage");
  const texts = ["", "", "", ""], reasons = [];
  let usage = null;
  for await (const event of await client.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })) {
    for (const choice of event.choices) {
      texts[choice.index] += choice.text;
      if (choice.finish_reason) reasons[choice.index] = choice.finish_reason;
    }
    if (event.usage) usage = event.usage;
  }
  equal(texts, whole.choices.map((c) => c.text), "streamed texts");
  equal(reasons, whole.choices.map((c) => c.finish_reason), "streamed reasons");
  equal(counted(usage), counted(whole.usage), "streamed usage");
  const echo = await client.completions.create({ model: "plain", prompt: "one two", echo: true, max_tokens: 1 });
  check(echo.choices[0].text.startsWith("one two"), `echo: ${echo.choices[0].text}`);
  const ids = await client.completions.create({ model: "plain", prompt: [5, 6, 7], max_tokens: 1 });
  equal(ids.usage.prompt_tokens, 3, "a prompt of ids");
});

await part("chat", async () => {
  const asked = { ...chat, n: 2, logprobs: true, top_logprobs: 3 };
  const whole = await client.chat.completions.create(asked);
  equal([whole.object, whole.model, whole.choices.length], ["chat.completion", "chatty", 2], "chat");
  for (const choice of whole.choices) {
    equal(choice.message.role, "assistant", "role");
    for (const token of choice.logprobs.content) {
      check(token.logprob <= 0 && token.top_logprobs.length === 3 && Array.isArray(token.bytes), `logprobs: ${text(token)}`);
      check(token.top_logprobs[0].logprob >= token.top_logprobs[2].logprob, "the most likely come first");
    }
  }
  const again = await client.chat.completions.create(asked);
  equal(again.choices, whole.choices, "the same seed again");
  // The client's own way of joining a stream is stricter than ours.
  const stream = client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
  let events = 0;
  stream.on("chunk", () => ++events);
  const joined = await stream.finalChatCompletion();
  check(events > 3, `${events} events`);
  equal(counted(joined.usage), counted(whole.usage), "usage of a stream");
  equal(joined.choices.map((c) => [c.message.content, c.finish_reason, c.logprobs]), whole.choices.map((c) => [c.message.content, c.finish_reason, c.logprobs]), "a stream joined by the client");
  // Leaving in the middle.
  const left = await client.chat.completions.create({ ...chat, max_tokens: 3000, logit_bias: { 470: -100 }, stream: true });
  for await (const event of left) {
    if (event.choices[0].delta.content) break;
  }
  left.controller.abort();
});

await part("json_schema", async () => {
  const format = { type: "json_schema", json_schema: { name: "answer", strict: true, schema: one_of("cat") } };
  const made = await client.chat.completions.parse({ ...chat, max_tokens: 200, response_format: format });
  const answer = JSON.parse(made.choices[0].message.content);
  equal([answer.kind, typeof answer.ok, made.choices[0].finish_reason], ["cat", "boolean", "stop"], "json_schema");
  const object = await client.completions.create({ model: "plain", prompt: "x", max_tokens: 200, seed: 5, logit_bias: { 470: 100 }, response_format: { type: "json_object" } });
  equal(typeof JSON.parse(object.choices[0].text), "object", "json_object");
});

await part("tools", async () => {
  const asked = {
    ...chat, model: "caller", max_tokens: 300, tools: [{ type: "function", function: weather }],
    response_format: { type: "json_schema", json_schema: { name: "call", schema: call } },
  };
  const whole = await client.chat.completions.create(asked);
  const made = whole.choices[0];
  equal([made.finish_reason, made.message.content, made.message.tool_calls?.length], ["tool_calls", null, 1], "a call");
  const { id, type, function: called } = made.message.tool_calls[0];
  equal([type, called.name, JSON.parse(called.arguments)], ["function", "weather", { city: "Paris" }], "what is called");
  const joined = await client.chat.completions.stream(asked).finalChatCompletion();
  equal([joined.choices[0].finish_reason, joined.choices[0].message.tool_calls[0].function.arguments], ["tool_calls", called.arguments], "a call in a stream");
  const next = await client.chat.completions.create({ ...chat, model: "caller", tools: asked.tools, messages: [...messages, made.message, { role: "tool", tool_call_id: id, content: "rain" }] });
  equal(next.choices[0].message.role, "assistant", "the answer after a tool's");
  for (const model of ["chatty", "caller"]) {  // in two styles
    const forced = { ...chat, model, max_tokens: 300, tools: [{ type: "function", function: { ...weather, parameters: call.properties.parameters, strict: true } }] };
    for (const tool_choice of ["required", { type: "function", function: { name: "weather" } }]) {
      const [choice] = (await client.chat.completions.create({ ...forced, tool_choice })).choices;
      const [of_stream] = (await client.chat.completions.stream({ ...forced, tool_choice }).finalChatCompletion()).choices;
      for (const { finish_reason, message } of [choice, of_stream]) {
        const said = message.tool_calls?.map((one) => [one.function.name, JSON.parse(one.function.arguments)]);
        equal([finish_reason, said], ["tool_calls", [["weather", { city: "Paris" }]]], `a call that has to be made by ${model}`);
      }
    }
  }
  await fails(client.chat.completions.create({ ...chat, tools: asked.tools, tool_choice: { type: "function", function: { name: "time" } } }), OpenAI.BadRequestError, { status: 400, param: "tool_choice" });
});

await part("embeddings", async () => {
  const input = ["the cat", "sat"];
  const floats = await client.embeddings.create({ model: "plain", input, encoding_format: "float" });
  equal(floats.data.map((d) => [d.object, d.index, d.embedding.length]), [["embedding", 0, 32], ["embedding", 1, 32]], "embeddings");
  const usual = await client.embeddings.create({ model: "plain", input });  // the client asks for base64 by itself
  const far = Math.max(...usual.data.flatMap((d, i) => d.embedding.map((x, k) => Math.abs(x - floats.data[i].embedding[k]))));
  check(far === 0, `base64 is ${far} from the numbers`);
  const raw = await client.embeddings.create({ model: "plain", input: "the cat", encoding_format: "base64" });
  equal(Buffer.from(raw.data[0].embedding, "base64").length, 4 * 32, "bytes of base64");
  const short = await client.embeddings.create({ model: "plain", input: "the cat", dimensions: 8, encoding_format: "float" });
  equal(short.data[0].embedding.length, 8, "dimensions");
  const length = Math.hypot(...short.data[0].embedding);
  check(Math.abs(length - 1) < 1e-5, `length ${length}`);
});

await part("responses", async () => {
  const asked = { model: "chatty", instructions: "Be kind.", input: "one 你好", max_output_tokens: 12, temperature: 0 };
  const whole = await client.responses.create(asked);
  const same = await client.chat.completions.create({ model: "chatty", messages, max_tokens: 12, temperature: 0 });
  equal(whole.output_text, same.choices[0].message.content, "output_text");
  equal(whole.usage.output_tokens, same.usage.completion_tokens, "usage of a response");
  equal([typeof whole.usage.input_tokens_details.cached_tokens, whole.usage.output_tokens_details.reasoning_tokens], ["number", 0], "details of the usage");
  equal(whole.status, same.choices[0].finish_reason === "length" ? "incomplete" : "completed", "status");
  let streamed = "", last = null;
  for await (const event of await client.responses.create({ ...asked, stream: true })) {
    if (event.type === "response.output_text.delta") streamed += event.delta;
    last = event;
  }
  equal(streamed, whole.output_text, "a response in parts");
  equal(last.response?.output[0].content[0].text, whole.output_text, "the last event");
  const joined = await client.responses.stream(asked).finalResponse();
  equal(joined.output_text, whole.output_text, "a response joined by the client");
  const items = await client.responses.create({ ...asked, input: [{ role: "user", content: [{ type: "input_text", text: "one 你好" }] }] });
  equal(items.output_text, whole.output_text, "an input of items");
  const formed = await client.responses.create({ ...asked, max_output_tokens: 200, text: { format: { type: "json_schema", name: "answer", schema: one_of("dog") } } });
  equal(JSON.parse(formed.output_text).kind, "dog", "a form");
  const calling = {
    ...asked, model: "caller", max_output_tokens: 300, tools: [{ type: "function", ...weather }], text: { format: { type: "json_schema", name: "call", schema: call } },
  };
  const calls_of = (response) => response.output.map((item) => [item.type, item.name, item.arguments && JSON.parse(item.arguments)]);
  const paris = [["function_call", "weather", { city: "Paris" }]];
  const called = await client.responses.create(calling);
  equal(calls_of(called), paris, "a call in a response");
  const forced = { ...asked, model: "chatty", max_output_tokens: 300, tools: [{ type: "function", ...weather, parameters: call.properties.parameters, strict: true }], tool_choice: "required" };
  equal(calls_of(await client.responses.create(forced)), paris, "a call in a response that has to be made");
  equal(calls_of(await client.responses.stream(forced).finalResponse()), paris, "the same joined by the client");
  equal(calls_of(await client.responses.stream(calling).finalResponse()), paris, "a call in a response joined by the client");
  const after = await client.responses.create({
    ...asked, model: "caller", input: [{ role: "user", content: "one" }, called.output[0], { type: "function_call_output", call_id: called.output[0].call_id, output: "rain" }],
  });
  equal(after.output[0].type, "message", "the answer after a tool's");
});

await part("errors", async () => {
  const as = (key) => new OpenAI({ baseURL, apiKey: key, maxRetries: 0 });
  await fails(as("key-of-the-tests-0003").models.list(), OpenAI.AuthenticationError, { status: 401, code: "invalid_api_key" });
  await fails(client.chat.completions.create({ ...chat, model: "absent" }), OpenAI.NotFoundError, { status: 404, code: "model_not_found", param: "model", message: "plain" });
  await fails(client.models.retrieve("absent"), OpenAI.NotFoundError, { status: 404, code: "model_not_found" });
  await fails(client.chat.completions.create({ ...chat, temperature: -1 }), OpenAI.BadRequestError, { status: 400, param: "temperature", message: "-1" });
  await fails(client.chat.completions.create({ ...chat, model: "plain" }), OpenAI.BadRequestError, { status: 400, param: "model", message: "no chat template" });
  await fails(client.chat.completions.create({ ...chat, messages: [{ role: "user", content: "word ".repeat(9000) }] }), OpenAI.BadRequestError, { code: "context_length_exceeded" });
  await fails(client.responses.create({ model: "chatty", input: "x", previous_response_id: "resp_1" }), OpenAI.BadRequestError, { param: "previous_response_id" });
  await fails(client.chat.completions.create({ ...chat, max_tokens: 3000, logit_bias: { 470: -100 } }, { timeout: 1 }), OpenAI.APIConnectionTimeoutError);
  await fails(client.files.list(), OpenAI.NotFoundError, { status: 404 });
  // 2 slots and 4 that wait: some of 20 are told to come back, and the client comes back by itself where it may.
  const busy = { model: "plain", prompt: "x", max_tokens: 300, logit_bias: { 470: -100 } };
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => client.completions.create(busy)));
  const refused = all.filter((one) => one.status === "rejected").map((one) => one.reason);
  check(refused.length > 0 && refused.length < 20, `${refused.length} of 20 refused`);
  for (const error of refused) {
    check(error instanceof OpenAI.RateLimitError && error.headers.get("retry-after") > 0, `refused with ${error}`);
  }
  const patient = new OpenAI({ baseURL, apiKey, maxRetries: 60 });
  const served = await Promise.allSettled(Array.from({ length: 12 }, () => patient.completions.create({ ...busy, max_tokens: 40 })));
  equal(served.filter((one) => one.status === "rejected").map((one) => String(one.reason)), [], "a patient client");
});

console.log(`${passed} checks passed, ${failed} failed`);
process.exit(failed === 0 && passed > 100 ? 0 : 1);
