#include "base/mapped_fault.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace qkv {
namespace {

constexpr int kBadInput = 2;  // the exit code

// Written under the lock, read by the handler without it. Entries are used again but never freed.
struct Mapping {
  std::atomic<uintptr_t> begin{0};  // 0: not in use
  size_t size = 0;
  std::string message;
  Mapping* next = nullptr;
};

std::mutex mappings_lock;
std::atomic<Mapping*> mappings{nullptr};
struct sigaction action_before;

// Only async-signal-safe calls.
void on_bus_error(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Mapping* m = mappings.load(std::memory_order_acquire); m != nullptr; m = m->next) {
    const uintptr_t begin = m->begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address - begin >= m->size) continue;
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, m->message.data(), m->message.size());
    ::_exit(kBadInput);
  }
  // Not ours: the same again, as if we had not been here. A fault comes back by itself, a sent signal does not.
  ::sigaction(SIGBUS, &action_before, nullptr);
  if (info->si_code <= 0) ::raise(SIGBUS);
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &action_before);
}

std::string message_for(const std::string& name) {
  const char* erase_line = ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";  // there may be a progress line
  return erase_line + ("qkv: " + name) +
         ": was shortened while it was in use, or its disk failed\n"
         "  hint: leave files alone while they are in use: write the new one beside it and rename it over the old\n";
}

}  // namespace

void note_mapping(std::span<const std::byte> bytes, const std::string& name) {
  static std::once_flag once;
  std::call_once(once, install_handler);
  const std::lock_guard lock(mappings_lock);
  Mapping* entry = mappings.load(std::memory_order_relaxed);
  while (entry != nullptr && entry->begin.load(std::memory_order_relaxed) != 0) entry = entry->next;
  const bool is_new = entry == nullptr;
  if (is_new) entry = new Mapping;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  entry->size = (bytes.size() + page - 1) / page * page;
  entry->message = message_for(name);
  if (is_new) {
    entry->next = mappings.load(std::memory_order_relaxed);
    mappings.store(entry, std::memory_order_release);
  }
  entry->begin.store(reinterpret_cast<uintptr_t>(bytes.data()), std::memory_order_release);
}

void forget_mapping(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mappings_lock);
  for (Mapping* m = mappings.load(std::memory_order_relaxed); m != nullptr; m = m->next) {
    if (m->begin.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(bytes.data())) m->begin.store(0);
  }
}

void touch_pages(std::span<const std::byte> bytes) {
  constexpr size_t kSmallestPage = 4096;
  for (size_t at = 0; at < bytes.size(); at += kSmallestPage) static_cast<void>(*(const volatile std::byte*)&bytes[at]);
  if (!bytes.empty()) static_cast<void>(*(const volatile std::byte*)&bytes.back());
}

}  // namespace qkv
