// Text from clients (process names, reasons) on its way into protobuf strings, which must be UTF-8: one bad byte would
// make a whole listing unreadable for everybody. Pure.
#ifndef UBD_RPC_TEXT_H_
#define UBD_RPC_TEXT_H_

#include <string>

namespace ubd {

// `text` as it is when it is UTF-8 without control characters; else with '?' for each control character, and for each
// byte above 127 if the whole is not UTF-8.
std::string CleanText(std::string text);

}  // namespace ubd

#endif  // UBD_RPC_TEXT_H_
