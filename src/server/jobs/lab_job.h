// A lab as the page follows it: the lines of qkv lab --lines.
#pragma once

#include "labs/lab.h"
#include "server/jobs/job.h"

namespace qkv::server {

// What the page says of a lab before it is run, and what was measured when it was recorded; null if it was not.
OrderedJson lab_json(const Lab& lab);

class LabJob : public Job {
 public:
  LabJob(const Lab& lab, int64_t seeds);

  Kind kind() const override { return Kind::lab; }
  std::vector<std::string> command() const override;
  void hear(const std::string& line) override;
  JobNews news() override;
  JobNews last_news(int exit_code) override;
  State end_state(int exit_code, bool asked) const override;
  OrderedJson json() const override;

  std::string name() const { return lab_.name; }
  const OrderedJson& report() const { return report_; }  // null until it is over

 private:
  std::optional<double> share() const;

  const Lab& lab_;
  int64_t seeds_, seed_ = 1, checks_ = 0;
  int64_t of_a_seed_ = 0;  // checks; 0: not known yet
  std::string doing_;
  OrderedJson report_;
  bool heard_ = false;
};

}  // namespace qkv::server
