// ubctl: the operator's tool.
#include "client/ubctl/commands.h"

int main(int argc, char** argv) {
  ub::ctl::CommandLine line;
  ub::ctl::AddAllCommands(line);
  return line.Main(argc, argv);
}
