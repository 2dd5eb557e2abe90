// Package kubernetes tests deploy/kubernetes and deploy/helm without a cluster:
// the chart is rendered by Helm's own engine, every object is decoded strictly
// into the type of its API, pods are judged by the Pod Security Standards, and the
// configuration is read by cdcpub itself.
//
// It is a module of its own: Helm and the APIs are many times the size of cdcpub,
// and cdcpub needs none of them.
package kubernetes
