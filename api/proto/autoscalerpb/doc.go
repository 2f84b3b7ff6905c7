// Package autoscalerpb is the generated form of ray.rpc.autoscaler, the GCS service of an autoscaler; see
// ../ray/rpc/autoscaler.
package autoscalerpb
