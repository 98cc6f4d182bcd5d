// A local web server for tests of downloads: no test needs a network.
#pragma once

#include <filesystem>
#include <string>

namespace trainscope::test {

// Runs tests/support/http_server.py until it goes out of scope.
class HttpServer {
 public:
  // Serves the files of `folder`; keeps its log at `log`.
  HttpServer(const std::filesystem::path& folder, const std::filesystem::path& log);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // "http://127.0.0.1:PORT/WAY", WAY as the script explains it.
  std::string url(const std::string& way) const;

 private:
  int pid_ = -1;
  std::string port_;
};

}  // namespace trainscope::test
