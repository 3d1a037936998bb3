#include "help/peer_names.h"

#include <algorithm>

namespace qkv::app {
namespace {

// `theirs` and `ours`, each separated by spaces; of ours the first that the command has is meant. Underscores are read
// as hyphens.
struct PeerNames {
  std::string_view theirs, ours;
};
constexpr PeerNames kPeerOptions[] = {
    {"-m --model --model-path --model-name --model-id --model-name-or-path --pretrained --hf-repo --hf-file", "MODEL"},
    {"-p --prompt --input --input-text", "PROMPT TEXT"},
    {"-n --n-predict --predict --num-predict --max-tokens --max-new-tokens --max-completion-tokens --max-output-tokens "
     "--max-length --n-tokens --num-tokens",
     "--max-new --window"},
    {"--temp", "--temperature"},
    {"--typical", "--typical-p"},
    {"--repeat-penalty --rep-pen", "--repetition-penalty"},
    {"--no-repeat-ngram-size", "--no-repeat-ngram"},
    {"-s --random-seed --sampling-seed", "--seed"},
    {"-r --reverse-prompt --stop-sequence --stop-sequences --stop-strings --antiprompt", "--stop"},
    {"-c --ctx-size --ctx --n-ctx --num-ctx --max-model-len --max-seq-len --max-seq-length --context-length "
     "--context-size --context-window",
     "--context --window"},
    {"-t --n-threads --num-threads --num-thread --threads-batch --cpu-threads --nproc", "--threads"},
    {"-ngl --n-gpu-layers --gpu-layers --num-gpu --gpu --gpus --cuda --cpu --device-map --main-gpu", "--device"},
    {"-ctk -ctv --cache-type-k --cache-type-v --kv-cache-dtype --kv-cache-type --cache-type", "--cache"},
    {"--torch-dtype --precision --data-type --weight-dtype --bf16 --fp16 --fp32",
     "--dtype --set precision.compute=bf16"},
    {"--num-beams --beam-size --beam-width --beams --use-beam-search", "--beam"},
    {"--num-return-sequences --best-of --n-samples --num-samples --n-best", "--n"},
    {"--n-probs --top-logprobs --log-probs", "--logprobs"},
    {"-sys --system-prompt --system-message", "--system"},
    {"--chat-template --chat-template-file --jinja", "--template"},
    {"--chat-template-kwargs", "--set"},
    {"--tools-file", "--tools"},
    {"-j --grammar --grammar-file --json-schema-file --guided-json --guided-grammar --structured-output "
     "--response-format",
     "--json-schema"},
    {"--draft-max --draft-n --num-speculative-tokens --prompt-lookup-num-tokens --lookup", "--draft"},
    {"--verbose --timings --show-timings --perf", "--stats"},
    {"-np --parallel --n-parallel --num-parallel --max-num-seqs --max-batch-size", "--slots"},
    {"--max-queue --max-queue-size --max-waiting", "--queue"},
    {"--api-key --api-keys --api-key-file", "--keys"},
    {"--ssl-certfile --ssl-cert-file --ssl-cert --tls-certificate", "--tls-cert"},
    {"--ssl-keyfile --ssl-key-file --ssl-key", "--tls-key"},
    {"--allowed-origins --origins --cors-origins --cors-allow-origins", "--cors"},
    {"--allowed-hosts --trusted-hosts --served-host", "--allow-host"},
    {"--hostname --listen --bind --addr --address", "--host"},
    {"-o --output --outfile --out-file --output-file --output-dir --out-dir --output-path --save-dir", "--out"},
    {"--outtype --output-format --to-format", "--format"},
    {"--quantize --quantization --quant --ftype --bits", "--to"},
    {"--group-size --q-group-size", "--group"},
    {"-f --file --dataset --dataset-name --dataset-path --data-path --train-file --training-data --calibration-data",
     "--data"},
    {"--lr --learning-rate", "--set schedule.peak=RATE"},
    {"--steps --max-steps --num-steps --iters --max-iters --num-train-steps", "--set steps=N"},
    {"--batch-size --per-device-train-batch-size --micro-batch-size --batch", "--set batch_tokens=N"},
    {"--seed", "--set seed=N"},
    {"--resume-from-checkpoint --resume-from --load-checkpoint", "--resume"},
    {"--from-pretrained --init-from --base-model", "--from"},
    {"--ppl-stride", "--stride"},
};
constexpr PeerNames kPeerCommands[] = {
    {"generate complete prompt", "run"},          {"server api", "serve"},    {"cli talk", "chat"},
    {"list ls pull download", "models"},          {"show inspect", "info"},   {"perplexity ppl", "eval"},
    {"finetune fine-tune pretrain fit", "train"}, {"export save", "convert"}, {"encode detokenize", "tokenize"},
};

template <class OnWord>
void for_each_word(std::string_view list, OnWord on_word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (!on_word(list.substr(0, end))) return;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

bool lists(std::string_view list, std::string_view wanted) {
  bool found = false;
  for_each_word(list, [&](std::string_view word) { return !(found = word == wanted); });
  return found;
}

}  // namespace

std::string own_option(const CommandInfo& command, std::string_view theirs) {
  std::string name(theirs);
  std::replace(name.begin(), name.end(), '_', '-');
  std::string own;
  for (const PeerNames& names : kPeerOptions) {
    if (!lists(names.theirs, name)) continue;
    // --set has a value: an option of a recipe.
    const size_t set = names.ours.find("--set ");
    for_each_word(names.ours.substr(0, set), [&](std::string_view option) {
      if (own.empty() && command.option(option) != nullptr) own = option;
      return own.empty();
    });
    if (own.empty() && set != names.ours.npos && command.option("--set") != nullptr && command.name == "train") {
      own = names.ours.substr(set);
    }
    if (!own.empty()) break;
  }
  return own;
}

std::string_view own_command(std::string_view theirs) {
  const auto found = std::find_if(std::begin(kPeerCommands), std::end(kPeerCommands),
                                  [&](const PeerNames& names) { return lists(names.theirs, theirs); });
  return found == std::end(kPeerCommands) ? std::string_view() : found->ours;
}

}  // namespace qkv::app
