package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// roundTrip answers calls of a client.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestATokenThatIsRenewedWhileACommandWaitsIsSent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	var sent []string
	through := withToken{file, roundTrip(func(request *http.Request) (*http.Response, error) {
		sent = append(sent, request.Header.Get(access.ForwardedHeader))
		return &http.Response{}, nil
	})}
	for _, token := range []string{"first\n", "second\n"} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		response, err := through.RoundTrip(httptest.NewRequest(http.MethodGet, "/v1/version", nil))
		if err != nil || response == nil {
			t.Fatal(response, err)
		}
	}
	if want := []string{"Bearer first", "Bearer second"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}
