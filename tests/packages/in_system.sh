#!/bin/sh
# Runs a test in an overlay of a clean Debian. `cargo xtask package --check` calls this script in new namespaces for
# mounts and processes.
#   BASE      the folder of the clean Debian
#   WORK      a folder for the overlay
#   SIZE      the largest size of all changed files
#   PACKAGES  the folder with the packages, seen as /packages
#   OLDER     the folder with the package of an older version, seen as /older
#   PROJECT   the root of the project; its folders `tests` and `packaging` are seen in /project
#   CACHE     a folder for downloaded Debian packages
#   BOOT      not empty: systemd runs the test as a service
set -eu

mkdir -p "$WORK"
mount -t tmpfs -o "size=$SIZE" tmpfs "$WORK"
mkdir "$WORK/changes" "$WORK/work" "$WORK/root"
mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$WORK/changes,workdir=$WORK/work" "$WORK/root"
cd "$WORK/root"

mkdir -p packages older project/tests project/packaging var/cache/apt/archives
mount --bind -o ro "$PACKAGES" packages
mount --bind -o ro "$OLDER" older
mount --bind -o ro "$PROJECT/tests" project/tests
mount --bind -o ro "$PROJECT/packaging" project/packaging
mount --bind "$CACHE" var/cache/apt/archives
cp /etc/resolv.conf etc/resolv.conf
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

mount -t proc proc proc
# apt-get writes its log through a terminal.
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
if [ -z "$BOOT" ]; then
    script=$1
    shift
    exec chroot . sh "/project/tests/packages/$script" "$@"
fi

# Installs systemd, which then starts the test as a service.
chroot . apt-get -qq install --yes --no-install-recommends systemd systemd-sysv dbus >/dev/null 2>&1
umount proc dev/pts
cat >etc/systemd/system/package-test.service <<UNIT
[Unit]
After=multi-user.target
SuccessAction=exit
FailureAction=exit

[Service]
Type=oneshot
Environment=DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
ExecStart=/bin/sh /project/tests/packages/$*
StandardOutput=file:/output
StandardError=file:/output
TimeoutStartSec=300
UNIT
mkdir -p etc/systemd/system/default.target.wants
ln -s ../package-test.service etc/systemd/system/default.target.wants/package-test.service
status=0
timeout --kill-after=20 400 systemd-nspawn --quiet --directory . --register=no --keep-unit --boot --console=pipe \
    --bind-ro="$PACKAGES:/packages" --bind-ro="$OLDER:/older" --bind-ro="$PROJECT/tests:/project/tests" \
    --bind-ro="$PROJECT/packaging:/project/packaging" --bind="$CACHE:/var/cache/apt/archives" \
    >console.log 2>&1 </dev/null || status=$?
cat output 2>/dev/null || cat console.log
exit "$status"
