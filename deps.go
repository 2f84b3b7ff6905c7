//go:build deps

// Package heliostat pins modules until code imports them.
package heliostat

import (
	_ "github.com/gin-gonic/gin"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	_ "github.com/spf13/cobra"
	_ "google.golang.org/grpc"
	_ "google.golang.org/grpc/reflection"
	_ "google.golang.org/protobuf/proto"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/metadata"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/manager"
	_ "sigs.k8s.io/yaml"
)
