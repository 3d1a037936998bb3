#!/bin/sh
# curl_test.sh QKV: every route of qkv serve as somebody with curl asks it.
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")
golden=$here/../golden
command -v curl >/dev/null || { echo 'curl is not installed'; exit 77; }
failed=0
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
bad() {
  printf '%s\n' "$1"
  failed=1
}
# shellcheck source=tests/server/serve_common.sh
. "$here/../server/serve_common.sh"
serve_models
key="key-of-the-tests-0001"
printf '%s\n' "$key" >"$folder/keys"
serve_start "$folder/chatty" "$folder/caller" "$folder/plain" --keys "$folder/keys"

ask() {  # ask STATUS ROUTE TEXT [BODY [OPTION...]]: the status, and TEXT somewhere in the answer, kept in $answer
  status=$1 route=$2 text=$3 body=${4-}
  [ $# -lt 4 ] || shift
  shift 3
  got=$(curl -sS -m 60 -o "$folder/answer" -w '%{http_code}' -H "Authorization: Bearer $key" \
    ${body:+-H 'Content-Type: application/json' -d "$body"} "$@" "http://127.0.0.1:$port$route" 2>&1)
  answer=$(cat "$folder/answer")
  [ "$got" = "$status" ] || bad "$route $body: $got, not $status: $answer"
  has "$text"
}
has() {
  case $answer in *"$1"*) ;; *) bad "$route $body: '$1' is not in: $answer" ;; esac
}
lacks() {
  case $answer in *"$1"*) bad "$route $body: '$1' is in: $answer" ;; esac
}

ask 200 /health '"status":"ok"'
ask 200 / '<!DOCTYPE html>'
ask 200 /metrics 'qkv_slots_active{model="plain"} 0'
ask 200 /v1/models '"id":"caller"'
ask 200 /v1/models/plain '"id":"plain"'
ask 404 /v1/models/absent 'model_not_found'

ask 200 /v1/completions '"finish_reason":"length"' \
  '{"model": "plain", "prompt": ["one", "two"], "n": 2, "max_tokens": 3, "seed": 1, "logprobs": 2, "logit_bias": {"470": -100}}'
has '"index":3'
has '"top_logprobs":[{'
has '"usage":{"prompt_tokens":'
has '"completion_tokens":12'

chat='"model": "chatty", "seed": 1, "messages": [{"role": "user", "content": "one"}]'
long='"logit_bias": {"470": -100}, "max_tokens": 5'
ask 200 /v1/chat/completions '"role":"assistant"' "{$chat, $long, \"logprobs\": true, \"top_logprobs\": 2}"
has '"object":"chat.completion"'
has '"logprobs":{"content":[{"token":'
whole=$(printf '%s' "$answer" | sed -n 's/.*"content":"\(.*\)","refusal".*/\1/p')
[ -n "$whole" ] || bad "no text in $answer"
ask 200 /v1/chat/completions 'data: [DONE]' "{$chat, $long, \"stream\": true, \"stream_options\": {\"include_usage\": true}}" -N
has '"object":"chat.completion.chunk"'
has '"completion_tokens":5'
parts=$(printf '%s\n' "$answer" | sed -n 's/^data: .*"delta":{.*"content":"\(.*\)"},"logprobs".*/\1/p' | tr -d '\n')
[ "$parts" = "$whole" ] || bad "streamed: $parts; whole: $whole"

schema='{"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {"kind": {"enum": ["cat"]}},
  "required": ["kind"], "additionalProperties": false}}}'
ask 200 /v1/chat/completions 'cat' "{$chat, \"max_tokens\": 200, \"response_format\": $schema}"
has '\"kind\"'
has '"finish_reason":"stop"'
call='{"type": "json_schema", "json_schema": {"name": "call", "schema": {"type": "object", "properties": {"name": {"enum": ["weather"]},
  "parameters": {"type": "object", "properties": {"city": {"enum": ["Paris"]}}, "required": ["city"], "additionalProperties": false}},
  "required": ["name", "parameters"], "additionalProperties": false}}}'
tools='[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]'
ask 200 /v1/chat/completions '"finish_reason":"tool_calls"' \
  "{\"model\": \"caller\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"max_tokens\": 300, \"tools\": $tools, \"response_format\": $call}"
has '"name":"weather"'
has 'Paris'

ask 200 /v1/responses '"object":"response"' '{"model": "chatty", "input": "one", "max_output_tokens": 4, "seed": 1}'
has '"output_tokens":'
ask 200 /v1/responses 'event: response.created' '{"model": "chatty", "input": "one", "max_output_tokens": 4, "stream": true}' -N
ask 200 /v1/embeddings '"embedding":[' '{"model": "plain", "input": ["one", "two"]}'
has '"index":1'
ask 200 /v1/embeddings '"embedding":"' '{"model": "plain", "input": "one", "encoding_format": "base64"}'
vector=$(printf '%s' "$answer" | sed 's/.*"embedding":"\([^"]*\)".*/\1/' | base64 -d | wc -c)
[ "$vector" = 128 ] || bad "32 numbers have $vector bytes: $answer"
ask 400 /v1/translate 'plain' '{"model": "plain", "input": "one"}'

ask 400 /v1/chat/completions '"param":"temperature"' "{$chat, \"temperature\": -1}"
lacks 'choices'
ask 400 /v1/chat/completions 'invalid_request_error' '{"model": '
ask 404 /v1/completions '"code":"model_not_found"' '{"model": "absent", "prompt": "x"}'
ask 405 /v1/completions 'POST'
ask 404 /v1/nowhere 'no such route'
ask 403 /health 'Host' '' -H 'Host: evil.example'
key="key-of-the-tests-0002"
ask 401 /v1/models '"code":"invalid_api_key"'
ask 200 /health ok

serve_stop TERM

# Without keys every user of this machine reaches the page: it is said, and work can be left out.
serve_start "$folder/plain" --cors '*'
grep -q 'no API keys.*--no-work' "$folder/err" || bad "nothing is said about work: $(cat "$folder/err")"
ask 200 /page/jobs '"can_start":true'
token=$(curl -sS "http://127.0.0.1:$port/" | sed -n 's/.*"token":"\([0-9a-f]*\)".*/\1/p')
ask 409 /page/training/pause 'nothing' '{}' -H "Origin: http://127.0.0.1:$port" -H "X-QKV-Token: $token"
ask 403 /page/training/pause 'Origin' '{}' -H "Origin: https://elsewhere.example" -H "X-QKV-Token: $token"
serve_stop TERM
serve_start "$folder/plain" --no-work
! grep -q 'no API keys' "$folder/err" || bad "it warns of what it does not allow: $(cat "$folder/err")"
ask 403 /page/jobs 'no-work'
serve_stop TERM
pid=
exit "$failed"
