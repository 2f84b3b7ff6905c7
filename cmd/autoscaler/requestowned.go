package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ownedFlags are the flags of `request` with --id, for a request in the caller's own name.
type ownedFlags struct {
	id             string
	priority       int32
	lease, wait    time.Duration
	hold, allOrNot bool
	renew, deletes bool
}

func (f *ownedFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "",
		"id of a request in your own name, which adds up with those of others; without it, the command sets the "+
			"plain request")
	flags.Int32Var(&f.priority, "priority", 0,
		"with --id: requests with a higher priority are served first if a limit does not allow all")
	flags.DurationVar(&f.lease, "lease", 0, "with --id: how long it is valid unless renewed, whole seconds")
	flags.BoolVar(&f.hold, "hold", false, "with --id: keep it until it is deleted")
	flags.BoolVar(&f.allOrNot, "all-or-nothing", false, "with --id: launch workers only if all bundles can be served")
	flags.DurationVar(&f.wait, "wait", 0, "with --id: how long to wait for workers, renewing the lease meanwhile; "+
		"the command fails if the request is not satisfied by then")
	flags.BoolVar(&f.renew, "renew", false, "with --id: renew the lease")
	flags.BoolVar(&f.deletes, "delete", false, "with --id: delete the request")
}

// misplaced fails if --id is not an id, or if a flag is set that requires one.
func (f *ownedFlags) misplaced() error {
	if f.id != "" {
		if !api.IsID(f.id) {
			return fmt.Errorf("--id %q: want %s", f.id, api.WantID)
		}
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"priority", f.priority != 0}, {"lease", f.lease != 0}, {"hold", f.hold}, {"all-or-nothing", f.allOrNot},
		{"wait", f.wait != 0}, {"renew", f.renew}, {"delete", f.deletes}} {
		if flag.given {
			return fmt.Errorf("--%s is for a request in your own name: give --id", flag.name)
		}
	}
	return nil
}

// given reports whether a flag sets a field of the request itself.
func (f *ownedFlags) given() bool { return f.priority != 0 || f.lease != 0 || f.hold || f.allOrNot }

// spec returns the body that creates or replaces a request; nil if the command does neither.
func (f *requestFlags) spec(stdin io.Reader) (json.RawMessage, error) {
	given := f.cpus != 0 || len(f.bundles) > 0 || f.file != ""
	switch own := &f.owned; {
	case f.clear:
		return nil, errors.New("--clear is for the plain request; want --delete")
	case own.renew && own.deletes || (own.renew || own.deletes) && given:
		return nil, errors.New("want one of --renew, --delete, and bundles")
	case own.lease < 0 || own.lease%time.Second != 0:
		return nil, fmt.Errorf("--lease %v: want whole seconds above 0", own.lease)
	case own.wait < 0 || own.wait%time.Second != 0:
		return nil, fmt.Errorf("--wait %v: want whole seconds above 0", own.wait)
	case !given && own.given():
		return nil, errors.New("--priority, --lease, --hold and --all-or-nothing create or replace a request: give " +
			"--bundle, --cpus or -f with them")
	case !given:
		return nil, nil
	case f.file != "" && (f.cpus != 0 || len(f.bundles) > 0 || own.given()):
		return nil, errors.New("want -f, which sets the whole request, or --cpus, --bundle, --priority, --lease, " +
			"--hold and --all-or-nothing")
	case f.file != "":
		return bodyOfFile(f.file, "a request", stdin)
	case (own.lease > 0) == own.hold:
		return nil, errors.New("want one of --lease and --hold")
	}
	body := map[string]any{"priority": f.owned.priority, "allOrNothing": f.owned.allOrNot}
	if f.owned.hold {
		body["holdUntilDeleted"] = true
	} else {
		body["leaseSeconds"] = int64(f.owned.lease / time.Second)
	}
	bundles, err := f.ownedBundles()
	if err != nil {
		return nil, err
	}
	body["bundles"] = bundles
	return json.Marshal(body)
}

// ownedBundles returns the bundles in the format of requests with owners. It also accepts amounts alone, as the plain
// request does.
func (f *requestFlags) ownedBundles() ([]map[string]any, error) {
	var bundles []map[string]any
	if f.cpus < 0 {
		return nil, fmt.Errorf("--cpus %d: want a number of at least 0", f.cpus)
	}
	if f.cpus > 0 {
		bundles = append(bundles, map[string]any{"resources": map[string]int{"CPU": 1}, "count": f.cpus})
	}
	for _, text := range f.bundles {
		var given map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return nil, fmt.Errorf("--bundle %s: want a JSON object such as {\"GPU\": 1}", text)
		}
		bundle, amounts := map[string]any{}, map[string]json.RawMessage{}
		for name, value := range given {
			object := strings.HasPrefix(strings.TrimSpace(string(value)), "{")
			switch {
			case (name == "resources" || name == "slice") && object, name == "labelSelectors", name == "count":
				bundle[name] = value
			default:
				amounts[name] = value
			}
		}
		if len(amounts) > 0 {
			if bundle["resources"] != nil {
				return nil, fmt.Errorf("--bundle %s: want amounts in resources, or beside slice and count, not both",
					text)
			}
			bundle["resources"] = amounts
		}
		bundles = append(bundles, bundle)
	}
	return bundles, nil
}

// mostWait is how long the server waits before it answers.
const mostWait = time.Minute

// runOwned creates, renews, shows or deletes a request in the caller's own name.
func (f *requestFlags) runOwned(
	cmd *cobra.Command,
	api *apiv1.Client,
	key nodepool.ClusterKey,
	spec json.RawMessage,
) error {
	as := printer.LookOf(cmd.OutOrStdout(), f.output)
	write := printer.WriterOf(f.output, as, func(p *printer.Page, r apiv1.OwnedRequest) {
		printer.WriteRequests(p, false, "", apiv1.RequestList{Items: []apiv1.OwnedRequest{r}})
	})
	if f.owned.deletes {
		if err := api.DeleteRequest(cmd.Context(), key, f.owned.id); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.ErrOrStderr(), "request %s of %s deleted\n", f.owned.id, key)
		return err
	}
	request, err := f.ownedNow(cmd, api, key, spec)
	if err != nil {
		return err
	}
	if err := write(cmd.OutOrStdout(), request); err != nil {
		return err
	}
	if f.owned.wait > 0 && request.State != raydemand.RequestSatisfied {
		noteStaleness(cmd, api, key)
		return fmt.Errorf("request %s of %s is not satisfied: %s: %s", request.ID, key, request.State,
			request.Reason.Message)
	}
	return nil
}

// ownedNow creates, renews or reads the request, and waits for it with --wait.
func (f *requestFlags) ownedNow(
	cmd *cobra.Command,
	api *apiv1.Client,
	key nodepool.ClusterKey,
	spec json.RawMessage,
) (request apiv1.OwnedRequest, err error) {
	ctx := cmd.Context()
	switch {
	case spec != nil:
		request, err = api.KeepRequest(ctx, key, f.owned.id, spec)
	case f.owned.renew:
		request, err = api.RenewRequest(ctx, key, f.owned.id)
	default:
		request, err = api.Request(ctx, key, f.owned.id, 0)
	}
	if err != nil {
		return request, err
	}
	if f.owned.wait > 0 && request.State == raydemand.RequestWaiting {
		noteStaleness(cmd, api, key)
	}
	return f.awaited(ctx, api, key, request, spec != nil || f.owned.renew)
}

// awaited waits until the request is no longer waiting, at most for --wait. If keeps is set, it renews the lease after
// each third of it, so that two renewals may fail before the lease expires. Otherwise it leaves renewal to the owner.
func (f *requestFlags) awaited(
	ctx context.Context,
	api *apiv1.Client,
	key nodepool.ClusterKey,
	request apiv1.OwnedRequest,
	keeps bool,
) (apiv1.OwnedRequest, error) {
	var err error
	third := max(time.Duration(request.LeaseSeconds)*time.Second/3, time.Second).Truncate(time.Second)
	unrenewed := time.Duration(0)
	for left := f.owned.wait; left > 0 && err == nil && request.State == raydemand.RequestWaiting; {
		step := min(left, mostWait)
		if keeps && request.LeaseSeconds > 0 {
			step = min(step, third-unrenewed)
		}
		request, err = api.Request(ctx, key, f.owned.id, step)
		left, unrenewed = left-step, unrenewed+step
		if err == nil && keeps && request.LeaseSeconds > 0 && unrenewed >= third &&
			request.State == raydemand.RequestWaiting {
			request, err = api.RenewRequest(ctx, key, f.owned.id)
			unrenewed = 0
		}
	}
	return request, err
}
