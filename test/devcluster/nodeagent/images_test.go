package nodeagent

import "testing"

func TestImagesDirectory(t *testing.T) {
	images := Images{
		"rayproject/ray:2.60.0": "/ray/2.60.0/bin",
		"rayproject/ray:2.52.*": "/ray/2.52/bin",
		"rayproject/*":          "/ray/any/bin",
		"heliostat/autoscaler":  "/heliostat/bin",
		"*/busybox*":            "",
		"localhost:5000/tool":   "/tool",
	}
	for _, c := range []struct {
		name, image, dir string
		ok               bool
	}{
		{"an exact name has precedence over patterns", "rayproject/ray:2.60.0", "/ray/2.60.0/bin", true},
		{"the longer pattern has precedence over the shorter", "rayproject/ray:2.52.1-py311", "/ray/2.52/bin", true},
		{"the shorter pattern matches the rest", "rayproject/ray-ml:2.9", "/ray/any/bin", true},
		{"the name can have the default registry", "docker.io/rayproject/ray:2.60.0", "/ray/2.60.0/bin", true},
		{"a name without a tag matches all tags", "heliostat/autoscaler:v1", "/heliostat/bin", true},
		{"a name without a tag matches a digest", "heliostat/autoscaler@sha256:abc", "/heliostat/bin", true},
		{"a registry's port is no tag", "localhost:5000/tool:1", "/tool", true},
		{"the directory can be empty", "library/busybox:1", "", true},
		{"an unknown image is not found", "nginx", "", false},
		{"a pattern matches the whole name", "x/rayproject/ray:1", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, ok := images.Directory(c.image)
			if dir != c.dir || ok != c.ok {
				t.Errorf("Directory(%q) = %q, %v; want %q, %v", c.image, dir, ok, c.dir, c.ok)
			}
		})
	}
}
