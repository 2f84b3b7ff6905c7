package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// OwnedRequests keeps requests of owners. may is asked about the request that is there, nil where there is none, right before it is written, and may
// refuse. Errors are those of package nodepool: ErrNoRequests, ErrGone, ErrNoRequest, ErrRequestElsewhere, ErrRequestRefused, ErrConflict, and may's own.
type OwnedRequests interface {
	// All lists every request, List those of one cluster.
	All() ([]nodepool.OwnedRequest, error)
	List(key nodepool.ClusterKey) ([]nodepool.OwnedRequest, error)
	Get(key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error)
	// Put makes a request or replaces it; created says which.
	Put(ctx context.Context, wanted nodepool.OwnedRequest, may func(known *nodepool.OwnedRequest) error) (kept nodepool.OwnedRequest, created bool, err error)
	Renew(ctx context.Context, key nodepool.ClusterKey, id string, now time.Time, may func(known *nodepool.OwnedRequest) error) (nodepool.OwnedRequest, error)
	Delete(ctx context.Context, key nodepool.ClusterKey, id string, may func(known *nodepool.OwnedRequest) error) error
	// Changes is closed when a request changes or goes; nil where there is none.
	Changes(key nodepool.ClusterKey, id string) <-chan struct{}
}

// maxWait bounds how long an answer waits for a request to be no longer waiting, maxID how long its id is.
const (
	maxWait = time.Minute
	maxID   = 63
)

// withoutOwned stands in where nobody keeps requests of owners.
type withoutOwned struct{ OwnedRequests }

func (withoutOwned) All() ([]nodepool.OwnedRequest, error) { return nil, errWithoutOwned }

func (withoutOwned) List(nodepool.ClusterKey) ([]nodepool.OwnedRequest, error) {
	return nil, errWithoutOwned
}

func (withoutOwned) Get(nodepool.ClusterKey, string) (nodepool.OwnedRequest, error) {
	return nodepool.OwnedRequest{}, errWithoutOwned
}

func (withoutOwned) Put(context.Context, nodepool.OwnedRequest, func(*nodepool.OwnedRequest) error) (kept nodepool.OwnedRequest, created bool, err error) {
	return kept, false, errWithoutOwned
}

func (withoutOwned) Renew(context.Context, nodepool.ClusterKey, string, time.Time, func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, error) {
	return nodepool.OwnedRequest{}, errWithoutOwned
}

func (withoutOwned) Delete(context.Context, nodepool.ClusterKey, string, func(*nodepool.OwnedRequest) error) error {
	return errWithoutOwned
}

var errWithoutOwned = fmt.Errorf("%w: this server keeps none", nodepool.ErrNoRequests)

func (s *server) owned() OwnedRequests {
	if s.Owned == nil {
		return withoutOwned{}
	}
	return s.Owned
}

// ListRequests serves GET /v1/requests.
func (s *server) ListRequests(c *gin.Context, params apiv1.ListRequestsParams) {
	all, unavailable := s.owned().All()
	all = slices.DeleteFunc(all, func(r nodepool.OwnedRequest) bool {
		return !wanted(params.Namespace, r.Cluster.Namespace) || !wanted(params.Owner, r.Owner)
	})
	namespaces := make([]string, len(all))
	for i := range all {
		namespaces[i] = all[i].Cluster.Namespace
	}
	visible, err := s.visible(c, namespaces)
	if err = cmp.Or(err, unavailable); err != nil {
		s.fail(c, err)
		return
	}
	answer := apiv1.RequestList{Items: []apiv1.OwnedRequest{}}
	for i := range all {
		if r := &all[i]; visible[r.Cluster.Namespace] && (params.State == "" || params.State == s.becameOf(r).State) {
			answer.Items = append(answer.Items, listed(s.requestShown(r)))
		}
	}
	write(c, http.StatusOK, "application/json", answer)
}

func wanted[T ~string](filter, value T) bool { return filter == "" || filter == value }

// ListClusterRequests serves GET …/requests. Where there are no requests of owners it shows the plain one alone.
func (s *server) ListClusterRequests(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	kept, since, err := s.Requests.Get(ctx, key)
	if err != nil {
		s.fail(c, fmt.Errorf("reading what is requested for %s: %w", key, err))
		return
	}
	answer := apiv1.RequestList{Items: []apiv1.OwnedRequest{}}
	if len(kept) > 0 {
		answer.Items = append(answer.Items, listed(s.plainShown(key, kept, since)))
	}
	all, err := s.owned().List(key)
	if err != nil && !errors.Is(err, nodepool.ErrNoRequests) {
		s.fail(c, err)
		return
	}
	for i := range all {
		answer.Items = append(answer.Items, listed(s.requestShown(&all[i])))
	}
	write(c, http.StatusOK, "application/json", answer)
}

// GetRequest serves GET …/request_resources/{id}.
func (s *server) GetRequest(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID, params apiv1.GetRequestParams) {
	wait, err := readWait(params.Wait)
	if err == nil {
		err = checkID(id)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	found, err := s.settled(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, id, wait)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.writeRequest(c, http.StatusOK, &found)
}

// settled is a request when it is no longer waiting, or as it is after the time to wait.
func (s *server) settled(c *gin.Context, key nodepool.ClusterKey, id string, wait time.Duration) (nodepool.OwnedRequest, error) {
	if wait > 0 {
		// The answer may come later than other answers do.
		deadline := time.Now().Add(wait + writeTimeout)
		if err := http.NewResponseController(c.Writer).SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nodepool.OwnedRequest{}, fmt.Errorf("waiting for request %s of %s: %w", id, key, err)
		}
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), wait)
	defer cancel()
	if found, err := s.owned().Get(key, id); err != nil || wait == 0 {
		return found, err
	}
	for {
		changes := s.owned().Changes(key, id) // before reading: what changes in between is not missed
		found, err := s.owned().Get(key, id)
		if err != nil || s.becameOf(&found).State != raydemand.RequestWaiting {
			return found, err
		}
		select {
		case <-ctx.Done():
			return found, c.Request.Context().Err() // none where it is the time to wait that is over
		case <-changes:
		}
	}
}

// readWait reads seconds such as 30s.
func readWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(strings.TrimSuffix(text, "s"), 10, 8)
	if wait := time.Duration(seconds) * time.Second; err == nil && wait <= maxWait {
		return wait, nil
	}
	return 0, invalid([]apiv1.FieldError{{Field: "wait", Value: shorten(text), Expected: "seconds such as 30s, at most 60s"}})
}

func checkID(id string) error {
	if len(id) > maxID || !namePattern.MatchString(id) {
		return invalid([]apiv1.FieldError{{Field: "id", Value: shorten(id), Expected: "a DNS name of at most 63 characters"}})
	}
	return nil
}

// KeepRequest serves PUT …/request_resources/{id}.
func (s *server) KeepRequest(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID, params apiv1.KeepRequestParams) {
	wanted, err := s.readRequest(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, id)
	if err != nil {
		s.fail(c, err)
		return
	}
	if params.IfNoneMatch != "" && params.IfNoneMatch != "*" {
		s.fail(c, invalid([]apiv1.FieldError{{Field: "If-None-Match", Value: shorten(string(params.IfNoneMatch)), Expected: "*"}}))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	kept, created, err := s.owned().Put(ctx, wanted, func(known *nodepool.OwnedRequest) error {
		if known != nil && params.IfNoneMatch == "*" {
			return fmt.Errorf("%w: there is one, of ETag %s", nodepool.ErrPrecondition, etag(known))
		}
		return errors.Join(matches(known, params.IfMatch), s.mine(c, known), s.roomFor(&wanted, known))
	})
	if err != nil {
		s.fail(c, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	s.writeRequest(c, status, &kept)
}

func (s *server) readRequest(c *gin.Context, key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	var wanted nodepool.OwnedRequest
	if err := checkID(id); err != nil {
		return wanted, err
	}
	body, err := readBody(c)
	if err != nil {
		return wanted, err
	}
	spec, err := decodeSpec(body)
	if err != nil {
		return wanted, err
	}
	if err := s.checkSpelling(key, bundlesOfSpec(&spec)); err != nil {
		return wanted, err
	}
	if err := s.mayPrioritize(c, key, spec.Priority); err != nil {
		return wanted, err
	}
	wanted.Cluster, wanted.ID, wanted.Owner, wanted.RenewedAt = key, id, s.ownerOf(c), s.now()
	wanted.Priority, wanted.AllOrNothing, wanted.LeaseSeconds = spec.Priority, spec.AllOrNothing, spec.LeaseSeconds
	wanted.Requests = spec.Bundles
	return wanted, nil
}

// ownerOf is in whose name a call asks.
func (s *server) ownerOf(c *gin.Context) string {
	if caller := callerOf(c); caller.Name != "" {
		return caller.Name
	}
	return access.Anybody.Name
}

// DeleteRequest serves DELETE …/request_resources/{id}.
func (s *server) DeleteRequest(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID, params apiv1.DeleteRequestParams) {
	err := checkID(id)
	if err == nil {
		ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
		defer cancel()
		err = s.owned().Delete(ctx, nodepool.ClusterKey{Namespace: namespace, Name: name}, id, func(known *nodepool.OwnedRequest) error {
			return errors.Join(matches(known, params.IfMatch), s.mine(c, known))
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

// RenewRequest serves POST …/request_resources/{id}/renew.
func (s *server) RenewRequest(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID) {
	err := checkID(id)
	var renewed nodepool.OwnedRequest
	if err == nil {
		ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
		defer cancel()
		renewed, err = s.owned().Renew(ctx, nodepool.ClusterKey{Namespace: namespace, Name: name}, id, s.now(), func(known *nodepool.OwnedRequest) error {
			return errors.Join(s.mine(c, known), s.roomFor(known, known))
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.writeRequest(c, http.StatusOK, &renewed)
}

// mine refuses a request of somebody else, unless the caller may change the RayCluster itself.
func (s *server) mine(c *gin.Context, known *nodepool.OwnedRequest) error {
	if known == nil || known.Owner == s.ownerOf(c) {
		return nil
	}
	group, resource := "ray.io", "rayclusters"
	may, err := s.may(c, access.Right{Verb: "patch", Group: group, Resource: resource, Namespace: known.Cluster.Namespace, Name: known.Cluster.Name})
	if err != nil || may {
		return err
	}
	return &problem{kind: forbidden, detail: fmt.Sprintf("request %s is of %q; it takes patch on %s to change what others ask for", known.ID, known.Owner, rayClusters)}
}

// matches checks If-Match: a list of ETags, or * for any request that is there.
func matches(known *nodepool.OwnedRequest, header string) error {
	switch {
	case header == "":
		return nil
	case known == nil:
		return fmt.Errorf("%w: there is none", nodepool.ErrPrecondition)
	}
	tags := strings.Split(header, ",")
	for i := range tags {
		tags[i] = strings.TrimSpace(tags[i])
	}
	if slices.Contains(tags, "*") || slices.Contains(tags, etag(known)) {
		return nil
	}
	return fmt.Errorf("%w: its ETag is %s", nodepool.ErrPrecondition, etag(known))
}

func etag(r *nodepool.OwnedRequest) string { return strconv.Quote(r.Version()) }

func (s *server) writeRequest(c *gin.Context, status int, r *nodepool.OwnedRequest) {
	c.Header("ETag", etag(r))
	shown := s.requestShown(r)
	shown.NotScaled = s.notScaled(r.Cluster)
	write(c, status, "application/json", shown)
}
