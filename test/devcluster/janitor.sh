# Cleans up after a cluster whose process was killed.
#
#   janitor.sh DIRECTORY KEEP
#
# Standard input is a pipe from the cluster's process. A line on it means that the process has cleaned up itself; its end
# without one means that the process is gone. Then everything that carries the cluster's mark in its environment, or lives
# in the home of one of its pods, is killed, and DIRECTORY is removed, all but its entry KEEP, and with it the directory of
# a short name that its entry r points to.
dir=$1 keep=$2

if read -r _; then
	exit 0
fi

marked() {
	local entry
	local -a entries
	mapfile -d '' entries 2>/dev/null <"/proc/$1/environ" || return 1
	for entry in "${entries[@]}"; do
		case "$entry" in
		"HELIOSTAT_DEVCLUSTER=$dir" | "HOME=$dir/pods/"*) return 0 ;;
		esac
	done
	return 1
}

for _ in {1..100}; do
	found=
	for process in /proc/[0-9]*; do
		pid=${process#/proc/}
		if marked "$pid" 2>/dev/null; then
			kill -KILL "$pid" 2>/dev/null
			found=1
		fi
	done
	[ -n "$found" ] || break
	sleep 0.1
done

if [ -L "$dir/r" ]; then
	rm -rf -- "$(readlink "$dir/r")"
fi
if [ -z "$keep" ]; then
	rm -rf -- "$dir"
	exit
fi
for entry in "$dir"/*; do
	[ "$entry" = "$dir/$keep" ] || rm -rf -- "$entry"
done
