# Tiny models with random weights for the tests of the page; read by those that need them.  web_models NAME...
# shellcheck shell=sh disable=SC2154
# $qkv is the program, $folder a temporary folder, $here the folder of this file. translator and experts are of their kind,
# any other name is a decoder. The weights are large, so that every head matters.

web_models() {
  decoder='"vocab_size":484,"hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
    "rms_norm_eps":1e-5,"max_position_embeddings":512,"bos_token_id":0,"eos_token_id":483,"rope_theta":10000.0,"tie_word_embeddings":false,"initializer_range":0.2'
  for model in "$@"; do
    tokenizer=qwen2
    case $model in
      translator)
        tokenizer=unigram
        spec='"model_type":"marian","vocab_size":124,"d_model":32,"encoder_layers":2,"decoder_layers":2,"encoder_attention_heads":4,"decoder_attention_heads":4,
          "encoder_ffn_dim":48,"decoder_ffn_dim":48,"activation_function":"relu","scale_embedding":true,"share_encoder_decoder_embeddings":true,
          "tie_word_embeddings":true,"max_position_embeddings":128,"init_std":0.3,"pad_token_id":0,"decoder_start_token_id":0,"eos_token_id":1,"forced_eos_token_id":1'
        ;;
      experts) spec="\"model_type\":\"mixtral\",\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":null,$decoder" ;;
      *) spec="\"model_type\":\"llama\",$decoder" ;;
    esac
    echo "{$spec}" >"$folder/spec.json"
    "$qkv" new --spec "$folder/spec.json" --seed 5 --out "$folder/$model" >/dev/null 2>&1
    cp "$here/../golden/tokenizers/$tokenizer/tokenizer.json" "$folder/$model/"
  done
}
