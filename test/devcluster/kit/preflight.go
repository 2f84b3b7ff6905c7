package kit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// What a machine must have free. A first build leaves 1.7 GiB of module sources, 2.9 GiB of compiled packages, 0.5 GiB
// of programs and 0.4 GiB for each Ray; a control plane with a Ray head and three workers takes 2.5 GiB of memory.
const (
	needDisk   = 8 << 30
	needMemory = 4 << 30
)

// errMachine lists missing prerequisites that cannot be installed automatically, in one line.
type errMachine []string

func (e errMachine) Error() string {
	return "this machine cannot run the dev cluster: " + strings.Join(e, "; ")
}

// Preflight returns an error of one line with all missing prerequisites for building and running a dev cluster.
func Preflight() error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	var lacks errMachine
	for _, err := range []error{CheckRun(), checkBuild(cache, true)} {
		var more errMachine
		if errors.As(err, &more) {
			lacks = append(lacks, more...)
		}
	}
	return lacks.orNil()
}

// orNil returns the error, or nil when nothing is lacking.
func (e errMachine) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// add appends what a check found.
func (e *errMachine) add(err error) {
	if err != nil {
		*e = append(*e, err.Error())
	}
}

// CheckRun returns an error with the missing prerequisites for running a built cluster.
func CheckRun() error {
	var lacks errMachine
	lacks.add(checkPlatform(runtime.GOOS, runtime.GOARCH))
	if _, err := exec.LookPath("bash"); err != nil {
		lacks.add(errors.New("bash is missing (KubeRay starts Ray with it): install bash"))
	}
	lacks.add(checkLoopback())
	lacks.add(checkMemory())
	return lacks.orNil()
}

// checkBuild returns the missing prerequisites for building into cache.
func checkBuild(cache string, python bool) error {
	var lacks errMachine
	if _, err := exec.LookPath("go"); err != nil {
		lacks.add(errors.New("go is missing: install Go 1.26 or newer"))
	} else {
		for _, dir := range []string{cache, goEnv("GOCACHE"), goEnv("GOMODCACHE")} {
			if err := checkDisk(dir); err != nil {
				lacks.add(err)
				break
			}
		}
	}
	if python {
		lacks.add(checkPython())
	}
	return lacks.orNil()
}

// checkPlatform reports a platform for which Ray has no wheels or that has no loopback network of 127.0.0.0/8.
func checkPlatform(goos, goarch string) error {
	if goos != "linux" || (goarch != "amd64" && goarch != "arm64") {
		return fmt.Errorf("it is %s/%s, but Linux on amd64 or arm64 is needed", goos, goarch)
	}
	return nil
}

// checkLoopback reports a machine on which not all of 127.0.0.0/8 can be used.
func checkLoopback() error {
	listener, err := net.Listen("tcp", "127.65.255.1:0")
	if err != nil {
		return fmt.Errorf("the loopback address 127.65.255.1 cannot be used (%w): pods need addresses of their own",
			err)
	}
	return listener.Close()
}

// checkPython reports a machine without an interpreter that can make the default Ray environment.
func checkPython() error {
	python, _, err := findPython(rayReleases[0])
	if err != nil {
		return err
	}
	if err := exec.Command(python, "-c", "import venv, ensurepip").Run(); err != nil {
		return fmt.Errorf("%s cannot make virtual environments: install its venv package (Debian: python3-venv)",
			python)
	}
	return nil
}

// checkDisk reports a file system with too little space for a first build. A directory that does not exist yet is
// judged by the nearest parent that does.
func checkDisk(dir string) error {
	for !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("free space of %s is unknown: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < needDisk {
		return fmt.Errorf("%s has %s of free disk space, a first build needs %s", dir, gib(free), gib(needDisk))
	}
	return nil
}

// checkMemory reports too little free memory, counting the limit of the control group the process runs in.
func checkMemory() error {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("free memory is unknown: %w", err)
	}
	free, err := availableMemory(string(info))
	if err != nil {
		return err
	}
	if limit, limited := readNumber("/sys/fs/cgroup/memory.max"); limited {
		free = min(free, limit) // what the group uses now says little: the page cache counts
	}
	if free < needMemory {
		return fmt.Errorf("%s of memory is free, a control plane with a few Ray workers needs %s", gib(free),
			gib(needMemory))
	}
	return nil
}

// availableMemory reads the bytes that can be had without swapping from the text of /proc/meminfo.
func availableMemory(meminfo string) (uint64, error) {
	for line := range strings.Lines(meminfo) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("free memory is unknown: /proc/meminfo has no MemAvailable")
}

// readNumber reads a file that holds one number; a control group without limit says "max" and has none.
func readNumber(path string) (uint64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// goEnv asks the go command for one of its settings, "" if it does not answer.
func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// gib prints bytes for a person.
func gib(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
