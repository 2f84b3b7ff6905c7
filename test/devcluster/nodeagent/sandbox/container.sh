# Process 1 of a container: sets up the private mount namespace and then executes the container's command.
#
#   container.sh SCRATCH NEWPROC WORKDIR [SOURCE TARGET rw|ro]... -- COMMAND...
#
# The script closes file descriptor 3 when the setup is complete. SCRATCH is an empty directory of the pod. NEWPROC is 1
# if the PID namespace is new as well. All other files of the machine stay visible. The script creates mount points that
# do not exist below /tmp only. Elsewhere it covers the nearest existing directory with a tmpfs that shows the same
# entries, and creates the mount point there.
set -eu

scratch=$1 newproc=$2 workdir=$3
shift 3
root=
mirrored=0

fail() {
	echo "preparing the container: $*" >&2
	exit 125
}

# mirror DIRECTORY covers it with a tmpfs that has the same entries, so that the script can add others.
mirror() {
	local covered=$1 copy=$scratch/$((mirrored += 1)) entry name
	mkdir -p "$copy"
	mount -t tmpfs -o mode=755 tmpfs "$copy"
	for entry in "$root${covered%/}"/* "$root${covered%/}"/.[!.]*; do
		name=${entry##*/}
		if [ -L "$entry" ]; then
			cp -P "$entry" "$copy/$name"
		elif [ -d "$entry" ]; then
			mkdir "$copy/$name" && mount --rbind "$entry" "$copy/$name" || true
		elif [ -e "$entry" ]; then
			: >"$copy/$name" && mount --bind "$entry" "$copy/$name" || true
		fi
	done
	if [ "$covered" = / ]; then
		root=$copy
	else
		mount --move "$copy" "$root$covered"
	fi
}

# make_target SOURCE TARGET creates TARGET, a directory or a file as SOURCE is.
make_target() {
	local source=$1 target=$2 above=$2
	[ ! -e "$root$target" ] || return 0
	while [ ! -d "$root$above" ]; do
		above=$(dirname "$above")
	done
	case "$above" in
	/tmp | /tmp/*) ;;
	*) [ -e "$scratch/made" ] && grep -qxF "$above" "$scratch/made" || mirror "$above" ;;
	esac
	if [ -d "$source" ]; then
		mkdir -p "$root$target"
	else
		mkdir -p "$(dirname "$root$target")" && : >"$root$target"
	fi
	echo "$above" >>"$scratch/made"
	echo "$target" >>"$scratch/made"
}

mount --make-rprivate / || fail "no private mounts"
mkdir -p "$scratch" && mount -t tmpfs -o mode=755 tmpfs "$scratch" || fail "no scratch directory"
if [ "$newproc" = 1 ]; then
	mount -t proc proc /proc || fail "no /proc"
fi
while [ "$1" != -- ]; do
	target=$(realpath -m "$2")
	make_target "$1" "$target" || fail "no mount point $2"
	mount --rbind "$1" "$root$target" || fail "no mount at $2"
	if [ "$3" = ro ]; then
		mount -o remount,bind,ro "$root$target" || fail "no read-only mount at $2"
	fi
	echo "$target" >>"$scratch/made"
	shift 3
done
shift
cd "$workdir" || fail "no working directory $workdir"
exec 3>&-
if [ -n "$root" ]; then
	exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$workdir" "$@"
fi
exec "$@"
