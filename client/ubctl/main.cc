// ubctl: the operator's tool.
#include "client/ubctl/commands.h"

int main(int argc, char** argv) {
  ub::ctl::CommandLine line;
  ub::ctl::AddStatusCommands(line);
  ub::ctl::AddPoolCommands(line);
  ub::ctl::AddLeaseListCommands(line);
  ub::ctl::AddWatchCommand(line);
  ub::ctl::AddTopCommand(line);
  ub::ctl::AddLeaseCommands(line);
  ub::ctl::AddDrainCommand(line);
  ub::ctl::AddBenchCommands(line);
  ub::ctl::AddDemoCommands(line);
  ub::ctl::AddCompletionCommands(line);
  return line.Main(argc, argv);
}
