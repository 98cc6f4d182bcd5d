// Tables as text, views as command lines.
#include "gui/app/copying.h"

#include <string>

#include "gui/app/bookmarks.h"

namespace trainscope::gui {

bool can_copy(const Workbench& workbench, const Panel& panel, CopyChoice choice) {
  if (workbench.run() == nullptr) return false;
  if (choice == CopyChoice::kCommand) return panel.twin != nullptr;
  const bool is_view = choice == CopyChoice::kView || choice == CopyChoice::kPicture;
  return is_view || panel.table != nullptr;
}

void copy_from(Workbench& workbench, const Panel& panel, CopyChoice choice) {
  const auto text = [&]() -> std::string {
    switch (choice) {
      case CopyChoice::kTsv:
        return tsv_of(panel.table(workbench));
      case CopyChoice::kMarkdown:
        return markdown_of(panel.table(workbench));
      case CopyChoice::kCommand:
        return panel.twin(workbench);
      case CopyChoice::kView:
        return command_of_view(workbench);
      case CopyChoice::kPicture:
        break;
    }
    return command_of_picture(workbench);
  };
  workbench.copied = text();
  workbench.tell("copied");
}

}  // namespace trainscope::gui
