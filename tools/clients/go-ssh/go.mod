module example/gosshclient

go 1.26.0

require golang.org/x/crypto v0.56.0

require golang.org/x/sys v0.47.0 // indirect
