// Package raypb is the generated form of the ray.rpc messages and services that Heliostat speaks; see ../ray/rpc.
package raypb
