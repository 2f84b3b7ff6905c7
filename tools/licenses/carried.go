package licenses

import "path/filepath"

// Architectures are the architectures for which programs are released.
var Architectures = []string{"amd64", "arm64"}

// OfImage returns the programs of the image for one architecture, and the package that contains the image's
// certificates. source is a checkout.
func OfImage(source, arch string) []Program {
	tools := filepath.Join(source, "tools")
	return []Program{
		{Dir: source, Package: "./cmd/autoscaler", Arch: arch},
		{Dir: tools, Package: "./image/bash", Arch: arch},
		{Dir: tools, Package: "golang.org/x/crypto/x509roots/fallback/bundle", Arch: arch},
	}
}

// Carried returns all programs that are distributed: those of the image, and the agent, which is built with the tag
// nvml.
func Carried(source string) (all []Program) {
	for _, arch := range Architectures {
		all = append(all, OfImage(source, arch)...)
		all = append(all, Program{Dir: source, Package: "./cmd/autoscaler", Arch: arch, Tags: "nvml"})
	}
	return all
}
