package serve

import (
	"encoding/json"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// groupsPath lists the placement groups that exist, at most 1,000: one of each deployment is enough.
const groupsPath = "/api/v0/placement_groups?detail=1&limit=1000" +
	"&filter_keys=state&filter_predicates=%3D&filter_values=CREATED"

// replicaPrefix begins the name of a replica's placement group: SERVE_REPLICA::APP#DEPLOYMENT#ID (ray: serve/_private/
// common.py, ReplicaID.to_full_id_str, the same in 2.40, 2.52 and 2.60).
const replicaPrefix = "SERVE_REPLICA::"

// AddGroups completes deployments whose placement groups the application's code sets, with those of running replicas.
// text is a reply of groupsPath. It does not say the strategy; PACK is Serve's default.
func AddGroups(deployments []raydemand.Deployment, text []byte) error {
	var reply struct {
		OK   *bool `json:"result"`
		Data struct {
			Result struct {
				Result []struct {
					Name    string `json:"name"`
					Bundles []struct {
						Resources map[string]float64 `json:"unit_resources"`
					} `json:"bundles"`
				} `json:"result"`
			} `json:"result"`
		} `json:"data"`
	}
	text = withoutNonNumbers(text)
	if err := json.Unmarshal(text, &reply); err != nil {
		return fmt.Errorf("%w: want JSON, it begins with %q: %w", raydemand.ErrBadReply, excerpt(text), err)
	}
	if reply.OK != nil && !*reply.OK {
		return fmt.Errorf("%w: it says that it failed: %q", raydemand.ErrUnavailable, excerpt(text))
	}
	known := map[[2]string][]raydemand.Bundle{}
	for i := range reply.Data.Result.Result {
		group := &reply.Data.Result.Result[i]
		replica, serves := strings.CutPrefix(group.Name, replicaPrefix)
		names := strings.Split(replica, "#")
		if !serves || len(names) != 3 || len(group.Bundles) == 0 {
			continue
		}
		amounts := make([]map[string]float64, len(group.Bundles))
		for k := range group.Bundles {
			amounts[k] = group.Bundles[k].Resources
		}
		bundles, err := grouped(amounts)
		if err != nil {
			return fmt.Errorf("%w: placement group %q: %w", raydemand.ErrBadReply, excerpt([]byte(group.Name)), err)
		}
		known[[2]string{names[0], names[1]}] = bundles
	}
	for i := range deployments {
		d := &deployments[i]
		if bundles := known[[2]string{d.App, d.Name}]; bundles != nil && d.Strategy == "" {
			d.Bundles, d.Strategy = bundles, raydemand.Pack
		}
	}
	return nil
}
