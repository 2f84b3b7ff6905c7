package nodeagent

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// This file holds everything that is done to a container's command and environment because it is Ray's and because
// many Ray nodes share one machine here. Nothing else is changed; numbers of CPUs and GPUs, being logical, stay.
//
//	before                                     after
//	--address=c-head-svc.ns.svc…:6379          --address=127.1.2.3:6379, likewise in FQ_RAY_IP, RAY_IP, RAY_ADDRESS
//	--metrics-export-port=8080                 a port of the pod's own: it listens on 0.0.0.0
//	--port=6379 or none, on a head             a port of the pod's own: it listens on 0.0.0.0; the agent forwards
//	                                           <pod IP>:6379 to it, so that 6379 works as in a real pod
//	--dashboard-host=0.0.0.0, on a head        the pod's address
//	ray start …                                exec ray start …, where it is the last command: signals arrive
//	(nothing)                                  --node-ip-address=<pod IP> --temp-dir=<the pod's>
//	(nothing, can be overridden)               --object-store-memory, --include-log-monitor=false,
//	                                           --disable-usage-stats
//	RAY_ADDRESS=127.0.0.1:6379, on a head      the pod's address: Ray replaces 127.0.0.1 by the machine's own
//	ray kuberay-autoscaler …                   --gcs-address=<pod IP>:6379: it would look at the machine's address
//
// Ports of the node's agents that KubeRay does not fix are left to them. A raylet (Ray 2.60) gives each port file that
// it needs 15 s, one after the other, and always needs the one of the agent's HTTP port, whatever flag names it: the
// fewer it waits for, the less time a slow start of the agent has.
//
// RAY_OVERRIDE_NODE_ID_FOR_TESTING is never set, and removed when empty: a node id that is not 28 bytes kills a GCS.

// defaultGCSPort is the port of KubeRay's head Service.
const defaultGCSPort = "6379"

// objectStoreBytes is slightly above Ray's least object store, 75 MiB.
const objectStoreBytes = "80000000"

// rayPod is what the rewriting of one pod needs to know.
type rayPod struct {
	ip      string
	tempDir string
	find    lookup
	// port returns a port that is free on every address of the machine. It returns the same one for the same name.
	port func(name string) (string, error)
	// forward makes <pod IP>:from lead to the same address at port to.
	forward func(from, to string) error
}

var (
	rayStart      = regexp.MustCompile(`\bray start(\s|$)`)
	rayAutoscaler = regexp.MustCompile(`\bray kuberay-autoscaler\b`)
	headFlag      = regexp.MustCompile(`\s--head(\s|$)`)
	// aLaterCommand finds what would not run after `exec`: a separator outside quotes.
	aLaterCommand = regexp.MustCompile(`^(?:[^'"&|;\n]|'[^']*'|"(?:\\.|[^"\\])*")*[&|;\n]\s*\S`)
)

// rewriteArgs returns the words of a container's command line as they must be here.
func (r rayPod) rewriteArgs(ctx context.Context, words []string) ([]string, error) {
	rewritten := make([]string, len(words))
	for i, word := range words {
		word, err := replaceServices(ctx, word, r.find)
		if err != nil {
			return nil, err
		}
		if at := rayStart.FindStringIndex(word); at != nil {
			if word, err = r.rewriteStart(word, at[0]); err != nil {
				return nil, err
			}
		}
		if at := rayAutoscaler.FindStringIndex(word); at != nil {
			word = word[:at[1]] + " --gcs-address=" + r.ip + ":" + defaultGCSPort + word[at[1]:]
		}
		rewritten[i] = word
	}
	return rewritten, nil
}

// rewriteStart rewrites the `ray start` that begins at the given place of a shell command.
func (r rayPod) rewriteStart(command string, at int) (string, error) {
	before, flags := command[:at], command[at+len("ray start"):]
	metricsPort, err := r.port("metrics")
	if err != nil {
		return "", err
	}
	flags = withFlag(flags, "metrics-export-port", metricsPort)
	flags = withFlag(flags, "node-ip-address", r.ip)
	flags = withFlag(flags, "temp-dir", r.tempDir)
	if headFlag.MatchString(flags) {
		if flags, err = r.rewriteHead(flags); err != nil {
			return "", err
		}
	}
	flags = withDefault(flags, "object-store-memory", objectStoreBytes)
	flags = withDefault(flags, "include-log-monitor", "false")
	if !strings.Contains(flags, "--disable-usage-stats") {
		flags = " --disable-usage-stats" + flags
	}
	start := "ray start"
	if !aLaterCommand.MatchString(flags) && startsACommand(before) {
		start = "exec ray start"
	}
	return before + start + flags, nil
}

func (r rayPod) rewriteHead(flags string) (string, error) {
	public := flagValue(flags, "port")
	if public == "" {
		public = defaultGCSPort
	}
	private, err := r.port("gcs")
	if err != nil {
		return "", err
	}
	if err := r.forward(public, private); err != nil {
		return "", fmt.Errorf("forwarding the GCS port: %w", err)
	}
	flags = withFlag(flags, "port", private)
	return withFlag(flags, "dashboard-host", r.ip), nil
}

// startsACommand tells whether a command may begin after text: `exec` stands only there.
func startsACommand(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasSuffix(text, ";") || strings.HasSuffix(text, "&&")
}

// rewriteEnv changes Ray's variables in place.
func (r rayPod) rewriteEnv(ctx context.Context, env environment) error {
	for name, value := range env {
		replaced, err := replaceServices(ctx, value, r.find)
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
		env["RAY_ADDRESS"] = r.ip + ":" + port
	}
	setDefault(env, "RAY_USAGE_STATS_ENABLED", "0")
	// Otherwise the first driver makes a raylet start one idle Python worker of 50 MB per CPU it was told to have,
	// and the machine has far fewer CPUs than its nodes announce.
	setDefault(env, "RAY_prestart_worker_first_driver", "0")
	if env["RAY_OVERRIDE_NODE_ID_FOR_TESTING"] == "" {
		delete(env, "RAY_OVERRIDE_NODE_ID_FOR_TESTING")
	}
	return nil
}

// rewriteGenerated rewrites the command that KubeRay leaves to containers with a command of their own.
func (r rayPod) rewriteGenerated(env environment) error {
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

func ofRay(env environment) bool {
	for name := range env {
		if strings.HasPrefix(name, "RAY_") {
			return true
		}
	}
	return false
}

func setDefault(env environment, name, value string) {
	if _, ok := env[name]; !ok {
		env[name] = value
	}
}

// flag finds `--name=value` or `--name value`, quoted or not.
func flag(name string) *regexp.Regexp {
	return regexp.MustCompile(`(\s--` + regexp.QuoteMeta(name) + `)(?:=|\s+)('[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|]+)`)
}

// withFlag sets a flag, whatever it was before.
func withFlag(flags, name, value string) string {
	if found := flag(name); found.MatchString(flags) {
		return found.ReplaceAllString(flags, "${1}="+value)
	}
	return " --" + name + "=" + value + flags
}

// withDefault sets a flag that is not there.
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
