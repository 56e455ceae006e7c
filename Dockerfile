# Images of both programs:
#
#   docker build -t kpc .                               kpc: compiles; needs no root and no network
#   docker build -t kpc-apply --target kpc-apply .      kpc-apply: changes the kernel of the node that it runs on
#
#   docker run --rm --volume "$PWD:/work" kpc compile -f services -o bundle
#   docker run --rm --privileged --network host --pid host --volume /lib/modules:/lib/modules:ro \
#     --volume /var/lib/kpc:/var/lib/kpc --volume "$PWD/bundle:/bundle:ro" kpc-apply apply /bundle

FROM node:22-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc tsconfig.json tsconfig.types.json ./
RUN npm ci --ignore-scripts
COPY LICENSE README.md CHANGELOG.md ./
COPY bin ./bin
COPY examples ./examples
COPY schemas ./schemas
COPY scripts ./scripts
COPY fixtures/codes ./fixtures/codes
COPY src ./src
RUN npm pack && npm install --global --prefix /opt/kpc ./kube-proxy-compiler-*.tgz

FROM node:22-bookworm-slim AS kpc-apply
RUN apt-get update \
  && apt-get install -y --no-install-recommends iptables ipset ipvsadm nftables conntrack iproute2 kmod \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/kpc /opt/kpc
ENV PATH=/opt/kpc/bin:$PATH
ENTRYPOINT ["kpc-apply"]

FROM node:22-bookworm-slim AS kpc
COPY --from=build /opt/kpc /opt/kpc
ENV PATH=/opt/kpc/bin:$PATH
WORKDIR /work
USER node
ENTRYPOINT ["kpc"]
