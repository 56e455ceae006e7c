/** The example of README.md. */
export const example = `apiVersion: v1
kind: Service
metadata: { name: nginx }
spec: { type: NodePort, clusterIP: 10.96.0.80, ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: nginx-x7k2p, labels: { kubernetes.io/service-name: nginx } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints:
  - { addresses: [10.244.1.10], nodeName: worker-1 }
  - { addresses: [10.244.2.10], nodeName: worker-2 }
  - { addresses: [10.244.2.11], nodeName: worker-2, conditions: { ready: false } }
---
{ apiVersion: v1, kind: Node, metadata: { name: worker-1 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
`;
