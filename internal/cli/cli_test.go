package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestAResourceIsToldByKindProfileOrMemory(t *testing.T) {
	for pair, want := range map[string]struct {
		resource gpuinfo.Resource
		err      string
	}{
		"acme.com/gpu=whole":                   {resource: gpuinfo.Resource{Name: "acme.com/gpu", Kind: gpuinfo.Whole, Role: gpuinfo.Devices}},
		"nvidia.com/mig-small=mig:1g.5gb":      {resource: gpuinfo.Resource{Name: "nvidia.com/mig-small", Kind: gpuinfo.MIG, Role: gpuinfo.Devices, Profile: "1g.5gb"}},
		"acme.com/vram=gpu-mem:256":            {resource: gpuinfo.Resource{Name: "acme.com/vram", Kind: gpuinfo.GPUMemory, Role: gpuinfo.Memory, Unit: 256}},
		"acme.com/nic=none":                    {resource: gpuinfo.Resource{Name: "acme.com/nic", Kind: gpuinfo.NoGPU, Role: gpuinfo.Devices}},
		"acme.com/vram=elsewhere":              {resource: gpuinfo.Resource{Name: "acme.com/vram", Kind: gpuinfo.Elsewhere, Role: gpuinfo.Devices}},
		"acme.com/vram=gpu-mem":                {err: `--resource "acme.com/vram=gpu-mem": the MiB of a unit is "": want acme.com/vram=gpu-mem:1024 for units of 1 GiB`},
		"acme.com/vram=gpu-mem:1Gi":            {err: `--resource "acme.com/vram=gpu-mem:1Gi": the MiB of a unit is "1Gi": want acme.com/vram=gpu-mem:1024 for units of 1 GiB`},
		"acme.com/vram=gpu-mem:0":              {err: `--resource "acme.com/vram=gpu-mem:0": the MiB of a unit is "0": want acme.com/vram=gpu-mem:1024 for units of 1 GiB`},
		"acme.com/gpu=whole:2":                 {err: `--resource "acme.com/gpu=whole:2": "2" follows whole: want it after mig or gpu-mem only`},
		"gpu=whole":                            {err: `--resource "gpu=whole": want a name such as example.com/gpu, =, and one of whole, mig, time-sliced, mps, gpu-mem:MIB, vgpu, none, elsewhere`},
		"/gpu=whole":                           {err: `--resource "/gpu=whole": want a name such as example.com/gpu, =, and one of whole, mig, time-sliced, mps, gpu-mem:MIB, vgpu, none, elsewhere`},
		"acme.com/gpu=half":                    {err: `--resource "acme.com/gpu=half": want a name such as example.com/gpu, =, and one of whole, mig, time-sliced, mps, gpu-mem:MIB, vgpu, none, elsewhere`},
		"nvidia.com/mig-small=mig:8g.5gb-wide": {err: `--resource "nvidia.com/mig-small=mig:8g.5gb-wide": reading MIG profile "8g.5gb-wide": want a name like 1g.10gb, 1g.10gb+me or 1c.2g.20gb`},
	} {
		resources, err := configuredResources([]string{pair})
		if want.err != "" {
			if err == nil || err.Error() != want.err {
				t.Errorf("%s: %v\nwant %s", pair, err, want.err)
			}
			continue
		}
		want.resource.Source = "--resource"
		if diff := cmp.Diff([]gpuinfo.Resource{want.resource}, resources); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", pair, err, diff)
		}
	}
}

// requesterOf asks a fake API server, of whose user the kubeconfig is, for tokens of ten minutes from now on, and
// counts them.
func requesterOf(user string, now time.Time) (lender *tokenRequester, tokens *int) {
	tokens = new(int)
	api := fake.NewClientset()
	api.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}},
		}, nil
	})
	api.PrependReactor("create", "serviceaccounts", func(k8stesting.Action) (bool, runtime.Object, error) {
		*tokens++
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: "token", ExpirationTimestamp: metav1.NewTime(now.Add(tokenLifetime)),
		}}, nil
	})
	return &tokenRequester{kubernetes: api, audience: "heliostat"}, tokens
}

func TestATokenIsRequestedAgainBeforeItExpires(t *testing.T) {
	now := time.Now()
	lender, tokens := requesterOf("system:serviceaccount:ml:driver", now)
	for _, at := range []struct {
		after time.Duration
		given int
	}{{0, 1}, {8 * time.Minute, 1}, {9*time.Minute + time.Second, 2}} {
		if _, err := lender.token(t.Context(), now.Add(at.after)); err != nil || *tokens != at.given {
			t.Errorf("after %v %d tokens were asked for, want %d: %v", at.after, *tokens, at.given, err)
		}
	}
}

// A transport leaves the request as it is: a client that tries again sends the same one.
func TestATokenIsNotLeftInTheRequest(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get(access.ForwardedHeader) }))
	defer server.Close()
	request, err := http.NewRequest(http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (withToken{(&tokenRequester{current: "lent", until: time.Now().Add(time.Hour)}).now, access.ForwardedHeader, http.DefaultTransport}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if sent != "Bearer lent" || len(request.Header) > 0 {
		t.Errorf("sent %q, and the request has %v", sent, request.Header)
	}
}
