// The page around a report's sections, and its style.
#include "profiler/report/report.h"

#include <fmt/format.h>

#include "profiler/report/html.h"
#include "profiler/report/sections.h"

namespace trainscope::profiler {
namespace {

// Colours c0 to c8 are told apart by those who see few colours, too (Okabe and Ito 2008).
constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #57606a;
  --line: #d0d7de; --panel: #f6f8fa; --accent: #0072b2;
  --c0: #0072b2; --c1: #cc79a7; --c2: #8a8a8a; --c3: #56b4e9; --c4: #d55e00; --c5: #009e73;
  --c6: #b08d00; --c7: #7a5195; --c8: #5f6b73; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9da7b1;
  --line: #30363d; --panel: #161b22; --accent: #56b4e9; --c0: #3f9fdc; --c6: #f0e442;
  --c7: #b08fd0; --c8: #a0abb5; } }
@media print { :root { --ink: #000; --paper: #fff; --soft: #444; --line: #bbb; --panel: #fff; }
  section, figure { break-inside: avoid; } nav { display: none; } .scroll { overflow: visible; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px; max-width: 1200px; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
h1 { font-size: 1.6em; margin: 0 0 4px; } h2 { font-size: 1.25em; margin: 32px 0 8px; }
h3 { font-size: 1em; margin: 20px 0 6px; }
p { margin: 6px 0; } .soft, figcaption { color: var(--soft); }
nav { margin: 12px 0; } nav a { margin-right: 14px; color: var(--accent); }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--panel); border: 1px solid var(--line); padding: 10px; white-space: pre-wrap; }
.cards { display: flex; flex-wrap: wrap; gap: 10px; }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: 8px 12px; flex: 1 1 150px; }
.card b { display: block; font-size: 1.25em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { padding: 3px 8px; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; overflow-wrap: normal; } td.t { min-width: 7em; }
th.n, td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; }
.bar { position: relative; min-width: 110px; height: 1.4em; }
.bar .fill { position: absolute; left: 0; top: 0; bottom: 0; background: var(--c0); opacity: .3; }
.bar .label { position: absolute; left: 5px; white-space: nowrap; }
figure { margin: 12px 0; max-width: 100%; }
svg { width: 100%; height: auto; max-height: 620px; display: block; }
svg.window { min-width: 900px; border: 1px solid var(--line); }
svg:not(.window) text { fill: var(--ink); font: 11px system-ui, sans-serif; }
svg .note { fill: var(--soft); }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: var(--line); stroke-width: 1; fill: none; }
.line { fill: none; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round; }
.roof { fill: none; stroke: var(--soft); stroke-width: 1.3; }
.mark { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 4 3; fill: none; }
svg:not(.window) circle, svg:not(.window) rect { fill-opacity: .75; stroke: var(--paper);
  stroke-width: .4; }
svg.dense { max-height: none; min-width: 640px; }
svg.dense rect.beyond { stroke: var(--ink); stroke-width: 1.6; }
.key { display: inline-block; width: 11px; height: 11px; margin: 0 4px 0 8px; }
@media (max-width: 600px) { svg:not(.window) text { font-size: 20px; }
  svg:not(.window) .tick.end { font-size: 15px; } svg.dense text { font-size: 11px; } }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr));
  gap: 0 24px; }
)css";

std::string color_rules() {
  std::string rules;
  for (int i = 0; i < 9; ++i) {
    rules += fmt::format(
        ".c{0} {{ fill: var(--c{0}); background: var(--c{0}); }} .s{0} {{ stroke: var(--c{0}); "
        "}}\n",
        i);
  }
  return rules;
}

struct Part {
  std::string_view id;
  std::string_view heading;
  std::string (*text)(const ReportInput&);
};
constexpr Part kParts[] = {
    {"summary", "Summary", summary_section},
    {"curves", "Curves", curves_section},
    {"numbers", "Numbers, against the truth and other runs", numbers_section},
    {"time", "Where the time goes", time_section},
    {"threads", "Threads", threads_section},
    {"steps", "Steps, and those that took longer", steps_section},
    {"roofline", "Rooflines", roofline_section},
    {"memory", "Memory", memory_section},
    {"window", "As the window shows it", pictures_section},
    {"stages", "Stages of the graph", stages_section},
    {"near-misses", "What passes nearly rewrote", near_misses_section},
    {"environment", "Environment, and how to repeat this", environment_section},
};

}  // namespace

std::string section(std::string_view id, std::string_view heading, std::string_view content) {
  return element("section", {{"id", id}},
                 element("h2", {}, escaped(heading)) + std::string(content)) +
         "\n";
}

std::string html_report(const ReportInput& input) {
  std::string links;
  std::string sections;
  for (const Part& part : kParts) {
    const std::string text = part.text(input);
    if (text.empty()) continue;
    links += element("a", {{"href", "#" + std::string(part.id)}}, escaped(part.heading));
    sections += section(part.id, part.heading, text);
  }
  const std::string title = "Run " + input.name;
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; img-src data:\">\n<title>{0}</title>\n<style>{1}{2}</style>\n</head>\n"
      "<body>\n<h1>{0}</h1>\n<nav>{3}</nav>\n{4}</body>\n</html>\n",
      escaped(title), kStyle, color_rules(), links, sections);
}

}  // namespace trainscope::profiler
