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
		{"an exact name goes before patterns", "rayproject/ray:2.60.0", "/ray/2.60.0/bin", true},
		{"the longer pattern goes before the shorter", "rayproject/ray:2.52.1-py311", "/ray/2.52/bin", true},
		{"the shorter pattern serves the rest", "rayproject/ray-ml:2.9", "/ray/any/bin", true},
		{"the default registry may be spelled out", "docker.io/rayproject/ray:2.60.0", "/ray/2.60.0/bin", true},
		{"a name without tag serves every tag", "heliostat/autoscaler:v1", "/heliostat/bin", true},
		{"a name without tag serves a digest", "heliostat/autoscaler@sha256:abc", "/heliostat/bin", true},
		{"a registry's port is no tag", "localhost:5000/tool:1", "/tool", true},
		{"no directory is an answer", "library/busybox:1", "", true},
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
