package rewrite

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// These are all changes to the commands and environments of Ray's containers. Numbers of CPUs and GPUs are logical, so
// they stay.
//
//	before                                     after
//	--address=c-head-svc.ns.svc…:6379          --address=127.1.2.3:6379, likewise in FQ_RAY_IP, RAY_IP, RAY_ADDRESS
//	--metrics-export-port=8080                 a port of the pod's own, because Ray listens on 0.0.0.0
//	--port=6379 or none, on a head             a port of the pod's own, because Ray listens on 0.0.0.0; the agent
//	                                           forwards <pod IP>:6379 to it, so that 6379 works as in a real pod
//	--dashboard-host=0.0.0.0, on a head        the pod's address
//	ray start …                                exec ray start …, if it is the last command, so that it gets signals
//	(nothing)                                  --node-ip-address=<pod IP> --temp-dir=<the pod's>
//	(nothing, can be overridden)               --object-store-memory, --disable-usage-stats, and if Ray
//	                                           knows it --include-log-monitor=false
//	RAY_ADDRESS=127.0.0.1:6379, on a head      the pod's address: Ray replaces 127.0.0.1 with the machine's
//	ray kuberay-autoscaler …                   --gcs-address=<pod IP>:6379: its default is the machine's address
//
// Ray's agents choose their other ports. A raylet (Ray 2.60) waits up to 15 s for each port file that it needs, one
// after the other, and always needs that of the agent's HTTP port, even if a flag sets the port. With fewer port files
// to wait for, an agent that starts slowly would have less time.
//
// An empty RAY_OVERRIDE_NODE_ID_FOR_TESTING is removed, because a GCS crashes on a node ID that does not have 28 bytes.

// defaultGCSPort is the port of KubeRay's head Service.
const defaultGCSPort = "6379"

// objectStoreBytes is slightly above the smallest object store that Ray allows, 75 MiB.
const objectStoreBytes = "80000000"

// Rewriter changes the commands and environments of one pod.
type Rewriter struct {
	// IP is the address of the pod.
	IP string
	// TempDir is the directory for Ray's sessions.
	TempDir string
	// LogMonitor is whether Ray has the flag --include-log-monitor, see HasLogMonitorFlag. Ray refuses flags that it
	// does not know.
	LogMonitor bool
	// Find looks up Services.
	Find Lookup
	// Port returns a port that is free on all addresses of the machine, and the same port for the same name.
	Port func(name string) (string, error)
	// Forward forwards connections from one port of the pod's address to another.
	Forward func(from, to string) error
}

var (
	rayStart      = regexp.MustCompile(`\bray start(\s|$)`)
	rayAutoscaler = regexp.MustCompile(`\bray kuberay-autoscaler\b`)
	headFlag      = regexp.MustCompile(`\s--head(\s|$)`)
	// aLaterCommand matches flags with a separator outside quotes: a command follows, which `exec` would skip.
	aLaterCommand = regexp.MustCompile(`^(?:[^'"&|;\n]|'[^']*'|"(?:\\.|[^"\\])*")*[&|;\n]\s*\S`)
)

// Args returns the words of a container's command line with all changes.
func (r Rewriter) Args(ctx context.Context, words []string) ([]string, error) {
	rewritten := make([]string, len(words))
	for i, word := range words {
		word, err := replaceServices(ctx, word, r.Find)
		if err != nil {
			return nil, err
		}
		if at := rayStart.FindStringIndex(word); at != nil {
			if word, err = r.rewriteStart(word, at[0]); err != nil {
				return nil, err
			}
		}
		if at := rayAutoscaler.FindStringIndex(word); at != nil {
			word = word[:at[1]] + " --gcs-address=" + r.IP + ":" + defaultGCSPort + word[at[1]:]
		}
		rewritten[i] = word
	}
	return rewritten, nil
}

// rewriteStart rewrites the `ray start` at this offset of a shell command.
func (r Rewriter) rewriteStart(command string, at int) (string, error) {
	before, flags := command[:at], command[at+len("ray start"):]
	metricsPort, err := r.Port("metrics")
	if err != nil {
		return "", err
	}
	flags = withFlag(flags, "metrics-export-port", metricsPort)
	flags = withFlag(flags, "node-ip-address", r.IP)
	flags = withFlag(flags, "temp-dir", r.TempDir)
	if headFlag.MatchString(flags) {
		if flags, err = r.rewriteHead(flags); err != nil {
			return "", err
		}
	}
	flags = withDefault(flags, "object-store-memory", objectStoreBytes)
	if r.LogMonitor {
		flags = withDefault(flags, "include-log-monitor", "false")
	}
	if !strings.Contains(flags, "--disable-usage-stats") {
		flags = " --disable-usage-stats" + flags
	}
	start := "ray start"
	if !aLaterCommand.MatchString(flags) && startsACommand(before) {
		start = "exec ray start"
	}
	return before + start + flags, nil
}

func (r Rewriter) rewriteHead(flags string) (string, error) {
	public := flagValue(flags, "port")
	if public == "" {
		public = defaultGCSPort
	}
	private, err := r.Port("gcs")
	if err != nil {
		return "", err
	}
	if err := r.Forward(public, private); err != nil {
		return "", fmt.Errorf("forwarding the GCS port: %w", err)
	}
	flags = withFlag(flags, "port", private)
	return withFlag(flags, "dashboard-host", r.IP), nil
}

// startsACommand reports whether a command, and thus `exec`, can follow text.
func startsACommand(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasSuffix(text, ";") || strings.HasSuffix(text, "&&")
}

// Env changes the variables of a container in place.
func (r Rewriter) Env(ctx context.Context, env map[string]string) error {
	for name, value := range env {
		replaced, err := replaceServices(ctx, value, r.Find)
		if err != nil {
			return fmt.Errorf("resolving variable %s: %w", name, err)
		}
		env[name] = replaced
	}
	if !ofRay(env) {
		return nil
	}
	if name := env["RAY_IP"]; name != "" && env["FQ_RAY_IP"] != "" {
		env["RAY_IP"] = env["FQ_RAY_IP"]
	}
	if err := r.rewriteGenerated(env); err != nil {
		return err
	}
	if port, ok := strings.CutPrefix(env["RAY_ADDRESS"], "127.0.0.1:"); ok {
		env["RAY_ADDRESS"] = r.IP + ":" + port
	}
	setDefault(env, "RAY_USAGE_STATS_ENABLED", "0")
	// By default a raylet starts an idle Python worker of 50 MB for each of its CPUs when the first driver connects,
	// and the nodes have far more CPUs than the machine.
	setDefault(env, "RAY_prestart_worker_first_driver", "0")
	if env["RAY_OVERRIDE_NODE_ID_FOR_TESTING"] == "" {
		delete(env, "RAY_OVERRIDE_NODE_ID_FOR_TESTING")
	}
	return nil
}

// rewriteGenerated rewrites the command that KubeRay passes to containers that have a command of their own.
func (r Rewriter) rewriteGenerated(env map[string]string) error {
	const name = "KUBERAY_GEN_RAY_START_CMD"
	at := rayStart.FindStringIndex(env[name])
	if at == nil {
		return nil
	}
	command, err := r.rewriteStart(env[name], at[0])
	if err != nil {
		return fmt.Errorf("rewriting variable %s: %w", name, err)
	}
	env[name] = command
	return nil
}

func ofRay(env map[string]string) bool {
	for name := range env {
		if strings.HasPrefix(name, "RAY_") {
			return true
		}
	}
	return false
}

func setDefault(env map[string]string, name, value string) {
	if _, ok := env[name]; !ok {
		env[name] = value
	}
}

// flag matches `--name=value` or `--name value`, quoted or not.
func flag(name string) *regexp.Regexp {
	return regexp.MustCompile(`(\s--` + regexp.QuoteMeta(name) + `)(?:=|\s+)('[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|]+)`)
}

// withFlag sets a flag and replaces its value.
func withFlag(flags, name, value string) string {
	if found := flag(name); found.MatchString(flags) {
		return found.ReplaceAllString(flags, "${1}="+value)
	}
	return " --" + name + "=" + value + flags
}

// withDefault sets a flag unless it is set.
func withDefault(flags, name, value string) string {
	if flag(name).MatchString(flags) {
		return flags
	}
	return " --" + name + "=" + value + flags
}

func flagValue(flags, name string) string {
	if found := flag(name).FindStringSubmatch(flags); found != nil {
		return strings.Trim(found[2], `'"`)
	}
	return ""
}
