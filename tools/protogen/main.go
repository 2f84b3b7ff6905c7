// Command protogen compiles our .proto files and writes the Go code for them, as buf or protoc would with the same two
// plugins. It exists because it builds in seconds, while buf takes minutes: checks on a new machine start with the
// generated code. It must not use other plugins than those that go.mod pins. Run it in its own directory's module:
//
//	go run ./protogen -source ../api/proto -out .. -module heliostat.dev/heliostat
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins are the programs that generate code from descriptors. The go.mod of this module pins them.
var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

func main() {
	source := flag.String("source", "", "the folder that import paths start from")
	out := flag.String("out", "", "the folder that the module path stands for")
	module := flag.String("module", "", "the module path, cut off in front of the go_package of each file")
	flag.Parse()
	if err := run(context.Background(), *source, *out, *module); err != nil {
		fmt.Fprintln(os.Stderr, "generating code:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, source, out, module string) error {
	files, err := protoFiles(source)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no .proto file below %s", source)
	}
	descriptors, err := compile(ctx, source, files)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files, ProtoFile: descriptors, Parameter: proto.String("module=" + module),
	}
	for _, plugin := range plugins {
		if err := generate(ctx, plugin, request, out); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// protoFiles returns the .proto files below source by their import paths, sorted.
func protoFiles(source string) (files []string, err error) {
	err = filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".proto" {
			return err
		}
		name, err := filepath.Rel(source, path)
		files = append(files, filepath.ToSlash(name))
		return err
	})
	return files, err
}

// compile returns the files and their imports, in the order that plugins expect: imports first.
func compile(ctx context.Context, source string, files []string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{source}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, err
	}
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).FileDescriptor)
		}
		all = append(all, protodesc.ToFileDescriptorProto(file))
	}
	for _, file := range compiled {
		add(file)
	}
	return all, nil
}

// generate runs one plugin and writes the files that the plugin returns.
func generate(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest, out string) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return fmt.Errorf("reading its answer: %w", err)
	}
	if response.GetError() != "" {
		return fmt.Errorf("%s", strings.TrimSpace(response.GetError()))
	}
	for _, file := range response.GetFile() {
		if err := os.WriteFile(filepath.Join(out, filepath.FromSlash(file.GetName())), []byte(file.GetContent()),
			0o644); err != nil {
			return err
		}
	}
	return nil
}
