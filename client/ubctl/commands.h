// Every command group's entry: adds its commands to the command line. One file implements each.
#ifndef UB_UBCTL_COMMANDS_H_
#define UB_UBCTL_COMMANDS_H_

#include "client/ubctl/command_line.h"

namespace ub::ctl {

void AddStatusCommands(CommandLine& line);      // status, version
void AddPoolCommands(CommandLine& line);        // pools, blocks
void AddLeaseListCommands(CommandLine& line);   // leases, sessions
void AddWatchCommand(CommandLine& line);        // watch
void AddTopCommand(CommandLine& line);          // top
void AddLeaseCommands(CommandLine& line);       // lease hold, lease revoke
void AddDrainCommand(CommandLine& line);        // drain
void AddBenchCommands(CommandLine& line);       // bench acquire, queue, ab, segments
void AddQueueCommands(CommandLine& line);       // queues, path get, path set
void AddVerifyCommand(CommandLine& line);       // verify
void AddTuneCommands(CommandLine& line);        // tune queue-depth, tune chunk
void AddDemoCommands(CommandLine& line);        // demo, and the hidden demo-consumer
void AddCompletionCommands(CommandLine& line);  // completion bash

// All of the above, in the order in which help lists them.
void AddAllCommands(CommandLine& line);

}  // namespace ub::ctl

#endif  // UB_UBCTL_COMMANDS_H_
