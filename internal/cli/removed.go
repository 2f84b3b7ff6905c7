package cli

// removed says what to use instead of flags that earlier releases had, by name or by letter. Of those without an entry,
// CHANGELOG.md says why nothing replaces them.
var removed = map[string]string{
	"clear":                   "use --delete",
	"client-ca-file":          "callers send a token; see --token-audiences",
	"client-certificate":      "send a token; see --token-file",
	"client-key":              "send a token; see --token-file",
	"config":                  "set flags, or the variables HELIOSTAT_…; docs/reference/commands.md lists them",
	"cpus":                    `use --bundle '{"CPU": 1, "count": 4}'`,
	"hold":                    "use -f with a file that says holdUntilDeleted: true",
	"kube-api-burst":          "it is twice --kube-api-qps",
	"max-in-flight-per-group": "use --max-in-flight, and maxReplicas of the group",
	"node":                    "compare the cards with `autoscaler nodepools`",
	"node-autoscaler":         "the known node autoscalers are those of docs/running.md",
	"node-file":               "compare the cards with `autoscaler nodepools`",
	"policy":                  "a plan follows the policy in the snapshot",
	"reads-per-second":        "use --shards for more than 4000 reads per second",
	"renew":                   "the same request again renews its lease",
	"tls-ca-file":             "put the authorities into ca.crt beside --tls-cert-file",
	"token-audience":          "use --token-file with the output of `kubectl create token NAME --audience heliostat`",
	"w":                       "use `watch autoscaler status`",
}
