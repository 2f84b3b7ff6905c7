package cli

// removed says what to use instead of flags that earlier releases had, by name or by letter. CHANGELOG.md has more.
var removed = map[string]string{
	"breaker-cooldown":        "a group that failed takes no launches for 5m",
	"clear":                   "use --delete",
	"client-ca-file":          "callers send a token; see --token-audiences",
	"client-certificate":      "send a token; see --token-file",
	"client-key":              "send a token; see --token-file",
	"config":                  "set flags, or the variables HELIOSTAT_…; docs/reference/commands.md lists them",
	"cpus":                    `use --bundle '{"CPU": 1, "count": 4}'`,
	"gcs-timeout":             "a call to a Ray head takes 3s at most",
	"gpu-for-cpu":             "work without GPUs starts GPU groups only where no other group serves it",
	"hold":                    "use -f with a file that says holdUntilDeleted: true",
	"kube-api-burst":          "it is twice --kube-api-qps",
	"max-in-flight-per-group": "use --max-in-flight, and maxReplicas of the group",
	"node":                    "compare the cards with `autoscaler nodepools`",
	"node-autoscaler":         "the known node autoscalers are those of docs/running.md",
	"node-file":               "compare the cards with `autoscaler nodepools`",
	"plan-budget":             "the number of different requests bounds a plan, and no time does",
	"policy":                  "a plan follows the policy in the snapshot",
	"poll-fast":               "a Ray head that changes is read every 100ms",
	"reads-per-second":        "use --shards for more than 4000 reads per second",
	"renew":                   "the same request again renews its lease",
	"tls-ca-file":             "put the authorities into ca.crt beside --tls-cert-file",
	"token-audience":          "use --token-file with the output of `kubectl create token NAME --audience heliostat`",
	"unschedulable-grace":     "it is a fifth of --allocation-timeout",
	"w":                       "use `watch autoscaler status`",
}
