#include "client/ubctl/commands.h"

namespace ub::ctl {

void AddAllCommands(CommandLine& line) {
  AddStatusCommands(line);
  AddPoolCommands(line);
  AddLeaseListCommands(line);
  AddQueueCommands(line);
  AddWatchCommand(line);
  AddTopCommand(line);
  AddLeaseCommands(line);
  AddDrainCommand(line);
  AddVerifyCommand(line);
  AddBenchCommands(line);
  AddTuneCommands(line);
  AddDemoCommands(line);
  AddCompletionCommands(line);
}

}  // namespace ub::ctl
