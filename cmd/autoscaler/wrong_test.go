package main

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
)

// TestWrongInvocationsSayWhatWouldBeRight checks the message for an invalid command line. It is one line on standard
// error with the error, the value, and the valid alternative.
func TestWrongInvocationsSayWhatWouldBeRight(t *testing.T) {
	newRemote(t)
	snapshot := fileOf(t, explainable)
	key, empty, large := fileOf(t, "key"), fileOf(t, "# nothing\n"), fileOf(t, strings.Repeat(" ", mostBody+1))
	blank := fileOf(t, "\n")
	const bundle, nowhere = `{"GPU": 1}`, "http://127.0.0.1:1"
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"statsu"}, `unknown command "statsu": want status; see autoscaler --help`},
		{[]string{"frobnicate"}, `unknown command "frobnicate"; see autoscaler --help`},
		{[]string{"help", "statsu"}, `unknown command "statsu": want status; see autoscaler --help`},
		{[]string{"help", "status", "now"}, `unknown command "now"; see autoscaler status --help`},
		{[]string{"status", "--outptu", "json"}, "unknown flag --outptu: want --output; see autoscaler status --help"},
		{[]string{"status", "--frobnicate"}, "unknown flag --frobnicate; see autoscaler status --help"},
		{[]string{"status", "-x"}, "unknown shorthand flag: 'x' in -x; see autoscaler status --help"},
		{[]string{"status", "-n"}, "flag needs an argument: 'n' in -n; see autoscaler status --help"},
		{[]string{"status", "-o", "xml"}, `--output "xml": want table, wide, json or yaml; see autoscaler status --help`},
		{[]string{"status", "a", "b"}, `unexpected argument "b": want one RayCluster at most, NAME or NAMESPACE/NAME; see autoscaler status --help`},
		{[]string{"status", "ml/"}, `RayCluster "ml/": want NAME or NAMESPACE/NAME`},
		{[]string{"status", "ml/llm", "-n", "dev"}, `RayCluster "ml/llm" is not in --namespace dev: want one of the two, or the same namespace`},
		{[]string{"status", "--server", "nowhere"}, `--server: reading server address "nowhere": write https://host:port, or http:// without TLS`},
		{[]string{"status", "--server", "ftp://x"}, `--server: reading server address "ftp://x": write http://host:port`},
		{[]string{"status", "--client-key", key}, "--client-certificate and --client-key: want both, or neither"},
		{[]string{"status", "--token-file", "no/such"}, "reading --token-file: open no/such: no such file or directory"},
		{[]string{"status", "--watch=perhaps"}, `--watch "perhaps": want true or false; see autoscaler status --help`},
		{[]string{"requests", "a", "b"}, `unexpected argument "b": want one RayCluster at most, NAME or NAMESPACE/NAME; see autoscaler requests --help`},
		{[]string{"freeze"}, "the RayCluster is missing: want one, NAME or NAMESPACE/NAME; see autoscaler freeze --help"},
		{[]string{"manage"}, "the RayCluster is missing: want one, NAME or NAMESPACE/NAME; see autoscaler manage --help"},
		{[]string{"freeze", "a", "b"}, "unexpected arguments b: want one RayCluster, NAME or NAMESPACE/NAME; see autoscaler freeze --help"},
		{[]string{"version", "now"}, `unexpected argument "now": want flags only; see autoscaler version --help`},
		{[]string{"completion"}, `shell "": want one of bash, zsh, fish and powershell`},
		{[]string{"request", "ml/llm", "--cpus", "two"}, `--cpus "two": want a whole number; see autoscaler request --help`},
		{[]string{"request", "ml/llm", "--cpus", "-1"}, "--cpus -1: want a number of at least 0"},
		{[]string{"request", "ml/llm", "--bundle", "[1]"}, `--bundle [1]: want a JSON object such as {"GPU": 1}`},
		{[]string{"request", "ml/llm", "--bundle", "null"}, `--bundle null: want a JSON object such as {"GPU": 1}`},
		{[]string{"request", "ml/llm", "--bundle", `{"gpu": 1}`}, `bundles[0]: want GPU; nothing in ml/llm has a resource gpu, is "gpu"`},
		{[]string{"request", "ml/llm", "--id", "a", "--hold", "--bundle", `{"gpu": 1}`}, `bundles[0]: want GPU; nothing in ml/llm has a resource gpu, is "gpu"`},
		{[]string{"request", "ml/llm", "--id", "A_B", "--hold", "--bundle", bundle}, `--id "A_B": want a DNS name of at most 63 characters`},
		{[]string{"request", "ml/llm", "--id", "a", "--bundle", bundle}, "want one of --lease and --hold"},
		{[]string{"request", "ml/llm", "--id", "a", "--lease", "soon", "--bundle", bundle}, `--lease "soon": want a duration such as 300ms, 90s or 1h30m; see autoscaler request --help`},
		{[]string{"request", "ml/llm", "--id", "a", "--priority", "9999999999"}, `--priority "9999999999": want a whole number from -2147483648 to 2147483647; see autoscaler request --help`},
		{[]string{"request", "ml/llm", "--lease", "1m"}, "--lease is for a request in your own name: give --id"},
		{[]string{"request", "ml/llm", "--delete"}, "--delete is for a request in your own name: give --id"},
		{[]string{"request", "ml/llm", "-f", "no/such"}, "opening a request: open no/such: no such file or directory"},
		{[]string{"request", "ml/llm", "-f", empty}, "reading a request from " + empty + ": it is empty: want the body of a call, as JSON or YAML"},
		{[]string{"request", "ml/llm", "-f", large}, large + " has 4194305 bytes, and at most 4194304 are read"},
		{[]string{"request", "ml/llm", "--clear", "--cpus", "1"}, "want one of --clear, -f, and --cpus with --bundle: each sets the whole request"},
		{[]string{"explain", "ml/llm"}, "want exactly one of --demand, --group, --pod, --gang and --request"},
		{[]string{"explain", "-f", snapshot, "--group", "gpus"}, `--group: "gpus": want one of cpu, gpu`},
		{[]string{"explain", "ml/llm", "--group", "gpu", "--pool-label", "x"}, "--resource, --pool-label and --topology-label are for files: the server reads the RayCluster's nodes with its own settings"},
		{[]string{"explain", "-f", snapshot, "--group", "gpu", "--resource", "x"}, `--resource "x": want a name such as example.com/gpu, =, and one of whole, mig, time-sliced, mps, gpu-mem, vgpu, none, elsewhere`},
		{[]string{"plan"}, "want a RayCluster, or --snapshot with a file or - for standard input"},
		{[]string{"plan", "-n", "ml"}, "want a RayCluster, or --snapshot with a file or - for standard input"},
		{[]string{"plan", "-f", snapshot, "--server", "http://127.0.0.1:1"}, "--server: --snapshot needs no server: want a RayCluster instead, or --snapshot without these flags"},
		{[]string{"explain", "-f", snapshot, "--group", "gpu", "-n", "ml", "--context", "dev"}, "--context, --namespace: --snapshot needs no server: want a RayCluster instead, or --snapshot without these flags"},
		{[]string{"plan", "ml/llm", "--resource", "a/b=whole"}, "--resource, --pool-label and --topology-label are for files: the server reads the RayCluster's nodes with its own settings"},
		{[]string{"plan", "--what-if", "w.json"}, "--what-if is for a RayCluster: want NAME or NAMESPACE/NAME beside it, or --snapshot in its place"},
		{[]string{"serve", "--kube-api-qps=abc"}, `--kube-api-qps "abc": want a number from 0.1 to 100000; see autoscaler serve --help`},
		{[]string{"serve", "--mode=managd"}, `--mode "managd": want managed, shadow or off; see autoscaler serve --help`},
		{[]string{"serve", "--mode="}, `--mode "": want managed, shadow or off; see autoscaler serve --help`},
		{[]string{"serve", "--shards", "auto", "--leader-elect"}, `--shards "auto" and --leader-elect exclude each other: want one of them; see autoscaler serve --help`},
		{[]string{"serve", "--config", fileOf(t, "shards: \"2\"\nleader-elect: true\n")}, `--shards "2" and --leader-elect exclude each other: want one of them; see autoscaler serve --help`},
		{[]string{"policy", "ml/llm", "--set", "{}", "--remove"}, `--set "{}" and --remove exclude each other: want one of them; see autoscaler policy --help`},
		{[]string{"policy", "ml/llm", "--set", ""}, `--set "": want a value, or the flag left out; see autoscaler policy --help`},
		{[]string{"serve", "--config", blank}, "--config " + blank + ": the file is empty: want names of flags with their values, such as log-level: debug, or {} to set no flag"},
		{[]string{"serve", "--config", fileOf(t, "- a\n")}, ": is a list: want names of flags with their values, such as log-level: debug"},
		{[]string{"serve", "--pools", blank}, "reading pools from " + blank + ": the file is empty: want a list of pools, or {} for none"},
		{[]string{"serve", "--prices", blank}, "reading prices from " + blank + ": the file is empty: want prices of nodes, or {} for none"},
		{[]string{"serve", "--advertise-address", "foo"}, `--advertise-address "foo": want an IP address such as 10.0.0.7`},
		{[]string{"serve", "--topology-label", "foo"}, `--topology-label "foo": has no =: want NODE=RAY such as nvidia.com/gpu.clique=ray.io/gpu-domain`},
		{[]string{"serve", "--topology-label", "a=b=c"}, `--topology-label "a=b=c": "b=c" is not a label's name (at most 63 of a to z, A to Z, 0 to 9, -, _ and ., after a domain and / if it has one): want NODE=RAY such as nvidia.com/gpu.clique=ray.io/gpu-domain`},
		{[]string{"nodepools", "-f", fileOf(t, "hello\n")}, "reading document 1: want a Kubernetes object: the document is of type string"},
		{[]string{"nodepools", "-f", fileOf(t, "kind: 5\n")}, "reading document 1: kind is 5: want a name such as RayCluster"},
		{[]string{"plan", "-f", snapshot, "ml/llm"}, `--snapshot "` + snapshot + `" cannot be combined with a RayCluster, here "ml/llm": want one of the two`},
		{[]string{"plan", "-f", empty}, empty + `: not JSON: want a snapshot {"groups": […], "nodes": […], …}, a JSON object with the keys of docs/reference/plan.md`},
		{[]string{"explain", "-f", snapshot, "--demand", `{"GPU": 1, "count": 2}`}, `--demand: count: 2: want {"resources": {…}, "count": 2}, because count is not a resource`},
		{[]string{"plan", "-f", blank}, blank + `: it is empty: want a snapshot {"groups": […], "nodes": […], …}, a JSON object with the keys of docs/reference/plan.md`},
		{[]string{"costs", "-o", "wide", "--server", nowhere}, `--output "wide": want table, json, yaml or csv; see autoscaler costs --help`},
		{[]string{"request", "ml/llm", "--server", nowhere, "--bundle", `{"GPU": "x"}`}, `bundles[0].GPU: want a number of at least 0, is "x"`},
		{[]string{"request", "ml/llm", "--server", nowhere, "--id", "A B", "--hold", "--bundle", bundle}, `--id "A B": want a DNS name of at most 63 characters`},
		{[]string{"serve", "--log-level=loud"}, `--log-level "loud": want debug, info, warn or error; see autoscaler serve --help`},
		{[]string{"serve", "--log-format=xml"}, `--log-format "xml": want json or text; see autoscaler serve --help`},
		{[]string{"doctor", "a", "b"}, `unexpected argument "b": want the name of one RayCluster; files follow -f`},
		{[]string{"doctor", "llm"}, `RayCluster "llm": want NAMESPACE/NAME, or its namespace with -n; files follow -f`},
		{[]string{"nodepools", "nodes.yaml"}, `unexpected argument "nodes.yaml"; files follow -f`},
		{[]string{"gpus", "--node", "a", "--node-file", "b"}, "want one of --node and --node-file"},
	} {
		code, out, errOut := command(t, "", append([]string{"autoscaler"}, c.argv...)...)
		if code != cli.ExitBadInput || out != "" || !strings.HasSuffix(errOut, c.want+"\n") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit %d %q: got\n%swant\nautoscaler: %s", c.argv, code, out, errOut, c.want)
		}
	}
}

// TestExplainReadsNodesAsItIsTold checks that --resource changes how explain reads the groups of a manifest offline, as
// it does online.
func TestExplainReadsNodesAsItIsTold(t *testing.T) {
	const file = `{"rayCluster": {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "llm", "namespace": "ml"}, "spec": {
		"headGroupSpec": {"template": {"spec": {"containers": [{"name": "h", "image": "r"}]}}},
		"workerGroupSpecs": [{"groupName": "half", "replicas": 0, "minReplicas": 0, "maxReplicas": 2, "rayStartParams": {"num-gpus": "1"}, "template": {"spec": {"containers": [
			{"name": "w", "image": "r", "resources": {"limits": {"cpu": "1", "memory": "1Gi", "corp.example/half": "1"}}}]}}}]}},
		"pendingRequests": [{"count": 1, "resources": {"GPU": 1}, "slice": {"isolation": "hardware"}}]}`
	asked := []string{"autoscaler", "explain", "-f", "-", "--demand", `{"resources": {"GPU": 1}, "slice": {"isolation": "hardware"}}`}
	_, untold, _ := command(t, file, asked...)
	code, told, errOut := command(t, file, append(asked, "--resource", "corp.example/half=whole")...)
	if code != cli.ExitOK || told == untold || !strings.Contains(told, "group half: launch") {
		t.Errorf("exit %d %s: told\n%suntold\n%s", code, errOut, told, untold)
	}
}
