#!/bin/bash
# Boots the Debian tree of a machine with systemd as PID 1. Runs in new namespaces, as PID 1 of them.
# Usage: boot.sh TREE FOLDER [FROM TO]...
#   TREE    read-only tree; changes go to FOLDER
#   FROM TO files or folders of this host that the machine sees at another path, read-only
set -eu
tree=$1 folder=$2
shift 2
root=$folder/root
mkdir -p "$folder/changes" "$folder/work" "$root"
mount -t overlay overlay -o "lowerdir=$tree,upperdir=$folder/changes,workdir=$folder/work" "$root"

ip link set lo up
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
  # Version 1 with the second version beside it: systemd calls it hybrid.
  mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  mkdir "$root/sys/fs/cgroup/systemd" "$root/sys/fs/cgroup/unified"
  mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
  for controller in cpu cpuacct memory pids; do
    mkdir "$root/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "$root/sys/fs/cgroup/$controller"
  done
fi
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty fuse; do
  [ -e "/dev/$device" ] || continue
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
touch "$root/dev/console"

while [ $# -ge 2 ]; do
  if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$(dirname "$root$2")" && touch "$root$2"; fi
  mount --bind "$1" "$root$2"
  mount -o remount,bind,ro "$root$2"
  shift 2
done

hostname machine
cd "$root"
mkdir -p .host
pivot_root . .host
umount -l /.host
# As systemd expects of a container: its credentials come by mounts that one namespace gives to another.
mount --make-rshared /
# A name of systemd for containers that it does not know (systemd-detect-virt). It does not try to load modules then.
export container=other
exec /lib/systemd/systemd --log-target=console --show-status=yes </dev/null
