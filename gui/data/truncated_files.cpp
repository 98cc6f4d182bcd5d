// Answers SIGBUS with a page of zeros where a mapped file has ended.
#include "gui/data/truncated_files.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace trainscope::gui {
namespace {

// Of the system; asked for before a signal can come.
std::uintptr_t page_bytes = 4096;

// Only a mapped file that has no such byte any more raises this code (mmap(2)); a page of our own
// takes its place, until the file is unmapped. What else comes ends the process as ever.
void replace_page(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code == BUS_ADRERR) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    void* const page = reinterpret_cast<void*>(address - address % page_bytes);
    void* const zeros =
        ::mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == page) return;
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void survive_truncated_files() {
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = replace_page;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace trainscope::gui
