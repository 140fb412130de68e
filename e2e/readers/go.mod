module github.com/carton-oci/carton-oci/e2e/readers

go 1.26.0

replace github.com/carton-oci/carton-oci => ../../

require (
	github.com/carton-oci/carton-oci v0.0.0-00010101000000-000000000000
	github.com/gpustack/gguf-parser-go v0.28.1
	github.com/nlpodyssey/safetensors v0.0.0-20250209183917-bfb01cc25f7c
)

require (
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/henvic/httpretty v0.1.4 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
	github.com/smallnest/ringbuffer v0.0.0-20241116012123-461381446e3d // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20241108190413-2d47ceb2692f // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	gonum.org/v1/gonum v0.15.1 // indirect
)
