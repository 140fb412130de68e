package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// describe writes the SBOM of a binary: the modules that the linker says are in it,
// and the standard library. The graph between them is not in a binary; all are
// what the program depends on.
// https://cyclonedx.org/docs/1.6/json/
func (r *release) describe(p platform, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	sum, err := sha256Of(binary)
	if err != nil {
		return err
	}
	main := component(cdx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}}
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	main.Properties = properties(info)

	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s: the module %s is replaced", filepath.Base(binary), m.Path)
		}
		parts = append(parts, component(cdx.ComponentTypeLibrary, m.Path, m.Version))
	}
	slices.SortFunc(parts, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, len(parts))
	for i, c := range parts {
		refs[i] = c.BOMRef
	}
	bom := cdx.NewBOM()
	bom.SpecVersion, bom.JSONSchema = cdx.SpecVersion1_6, ""
	bom.Metadata = &cdx.Metadata{Timestamp: r.source.time.Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return r.write(p.os+"_"+p.arch+".cdx.json", func() ([]byte, error) {
		var b bytes.Buffer
		err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
		return b.Bytes(), err
	})
}

// component is a module. https://github.com/package-url/purl-spec: type golang
func component(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}

// properties are what the binary says of how it was built.
func properties(info *debug.BuildInfo) *[]cdx.Property {
	list := []cdx.Property{{Name: "go:version", Value: info.GoVersion}}
	for _, s := range info.Settings {
		list = append(list, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	return &list
}
