// Release makes everything that a release consists of, and uploads nothing:
//
//	go -C e2e run ./release -version v0.1.0 -o ../dist
//
// What it writes:
//
//   - carton-oci_0.1.0_OS_ARCH.tar.gz (.zip for Windows): the program, LICENSE,
//     README.md and CHANGELOG.md, man pages (man/man1) and scripts of completion
//     (completion/SHELL), for Linux, macOS and Windows on amd64 and arm64
//   - carton-oci_0.1.0_OS_ARCH.cdx.json: what that program was built of, its SBOM
//     in CycloneDX 1.6, as the program itself tells it
//   - image: an OCI image layout with a static image for Linux on both, as 0.1.0
//   - carton-oci_0.1.0_kubernetes.tar.gz: examples/kubernetes, naming that image by
//     its digest
//   - notes.md: what CHANGELOG.md says of the version
//   - checksums.txt: the sha256 of every file that is uploaded, as sha256sum -c
//     reads it
//
// # Rules
//
// It is built from a commit, not from a folder: the program clones HEAD, tags the
// clone and builds there. So what is in nobody's history is in no release, and the
// go command writes the tag and the commit into the binary, without a flag of ours.
//
// Every file is a function of the commit, the tag and the version of Go: no cgo,
// -trimpath, the commit's time as the only time. Two people who build one tag get
// one checksums.txt.
//
// The image is this program's work too, through pkg/layout: there is no container
// engine to install, and no base image to trust. It holds the program, the root
// certificates that golang.org/x/crypto keeps (Mozilla's), two users and three
// folders.
package main
